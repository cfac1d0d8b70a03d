"""Changes are on disk when their caller continues, fail alone, and are announced afterwards."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import pytest
from django.db import (
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    connections,
    transaction,
)

from agents_app.database import ENGINE, transactions
from agents_app.database.transactions import (
    UNAVAILABLE,
    GroupCommit,
    Outcome,
    in_transaction,
    repeat_after_lost_connection,
)
from agents_app.models import Agent, Tenant

pytestmark = pytest.mark.django_db(transaction=True)


def is_committed(name: str) -> bool:
    """Whether another connection sees the tenant, so whether it is committed."""

    def look() -> bool:
        try:
            return Tenant.objects.filter(name=name).exists()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other_thread:
        return other_thread.submit(look).result()


def make(name: str) -> Tenant:
    return Tenant.objects.create(name=name)


def fail(name: str) -> None:
    make(name)
    raise ValueError(f"no {name}")


def commit_as_group(*changes: Any) -> list[Any]:
    """The result or the error of each change."""
    batch: list[transactions.Change] = [(change, SimpleQueue()) for change in changes]
    transactions._writer.store(batch)
    answers = [reply.get_nowait() for _, reply in batch]
    return [result if error is None else error for result, error in answers]


# --- one change -----------------------------------------------------------------------------


def test_a_change_is_on_disk_when_its_caller_continues():
    in_transaction(lambda: make("a"))
    assert is_committed("a")


def test_the_result_of_a_change_is_returned():
    assert in_transaction(lambda: make("a")).name == "a"


def test_a_change_that_fails_is_rolled_back_and_raises_its_error():
    with pytest.raises(ValueError, match="no a"):
        in_transaction(lambda: fail("a"))
    assert not Tenant.objects.exists()


def test_after_a_failure_the_next_change_works():
    with pytest.raises(ValueError, match="no a"):
        in_transaction(lambda: fail("a"))
    in_transaction(lambda: make("b"))
    assert is_committed("b")


def test_a_change_within_a_transaction_belongs_to_it():
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        in_transaction(lambda: make("a"))
        raise ZeroDivisionError
    assert not Tenant.objects.exists()


def test_a_callback_of_the_commit_runs_after_it_and_before_the_caller_continues():
    seen: list[bool] = []

    def change() -> None:
        make("a")
        transaction.on_commit(lambda: seen.append(is_committed("a")))

    in_transaction(change)
    assert seen == [True]


def test_a_callback_of_a_commit_that_fails_never_runs():
    seen: list[str] = []

    def change() -> None:
        transaction.on_commit(lambda: seen.append("committed"))
        raise ValueError

    with pytest.raises(ValueError):
        in_transaction(change)
    assert seen == []


def test_many_threads_write_at_once_and_each_gets_its_own_result():
    def write(number: int) -> str:
        try:
            if number % 10 == 3:
                in_transaction(lambda: fail(f"t{number}"))
            return in_transaction(lambda: make(f"t{number}")).name
        except ValueError as error:
            return str(error)
        finally:
            connection.close()

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(write, range(200)))
    assert answers == [f"no t{n}" if n % 10 == 3 else f"t{n}" for n in range(200)]
    assert Tenant.objects.count() == 180


# --- several in one commit ------------------------------------------------------------------


def test_a_change_that_fails_does_not_affect_the_others():
    results = commit_as_group(lambda: make("a").name, lambda: fail("b"), lambda: make("c").name)
    assert (results[0], str(results[1]), results[2]) == ("a", "no b", "c")
    assert set(Tenant.objects.values_list("name", flat=True)) == {"a", "c"}


def test_a_change_that_the_database_refuses_does_not_affect_the_others():
    results = commit_as_group(lambda: make("a").name, lambda: make("a"), lambda: make("c").name)
    assert isinstance(results[1], IntegrityError)
    assert set(Tenant.objects.values_list("name", flat=True)) == {"a", "c"}


def test_a_change_that_the_database_refuses_at_the_commit_does_not_affect_the_others():
    """Foreign keys are checked at the commit."""

    def without_tenant() -> None:
        Agent.objects.create(tenant_id=12345, name="orphan")

    results = commit_as_group(lambda: make("a").name, without_tenant, lambda: make("c").name)
    assert isinstance(results[1], IntegrityError)
    assert (results[0], results[2]) == ("a", "c")
    assert set(Tenant.objects.values_list("name", flat=True)) == {"a", "c"}


def test_callbacks_run_only_for_changes_that_were_committed():
    announced: list[str] = []

    def change(name: str, works: bool) -> None:
        transaction.on_commit(lambda: announced.append(name))
        make(name) if works else fail(name)

    commit_as_group(
        lambda: change("a", True), lambda: change("b", False), lambda: change("c", True)
    )
    assert announced == ["a", "c"]


def test_a_change_is_a_success_even_if_a_callback_of_its_commit_raises():
    def change() -> str:
        transaction.on_commit(lambda: 1 / 0)
        return make("a").name

    assert commit_as_group(change, lambda: make("b").name) == ["a", "b"]


def test_a_change_sees_the_earlier_changes_of_its_group():
    assert commit_as_group(lambda: make("a") and None, Tenant.objects.count)[1] == 1


# --- the writing thread ---------------------------------------------------------------------


def test_one_thread_writes_for_all_exactly_where_the_engine_groups_commits():
    def write(_: int) -> tuple[int, int]:
        try:
            return threading.get_ident(), in_transaction(threading.get_ident)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        pairs = list(threads.map(write, range(50)))
    if ENGINE.groups_commits:
        assert len({writer for _, writer in pairs}) == 1
        assert all(caller != writer for caller, writer in pairs)
    else:
        assert all(caller == writer for caller, writer in pairs)


def test_a_transaction_waits_for_another_one_that_holds_a_lock():
    """The lock is on the file on SQLite and on the row on PostgreSQL."""
    tenant = in_transaction(lambda: make("a"))
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                Tenant.objects.filter(pk=tenant.pk).update(pause_note="theirs")
                held.set()
                free.wait(5)
        finally:
            connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(5)
    threading.Timer(0.5, free.set).start()
    began = time.monotonic()
    in_transaction(lambda: Tenant.objects.filter(pk=tenant.pk).update(pause_note="ours"))
    assert time.monotonic() - began > 0.3
    holder.join()
    tenant.refresh_from_db()
    assert tenant.pause_note == "ours"


def test_a_forked_process_commits_with_a_thread_of_its_own():
    in_transaction(lambda: make("parent"))
    connections.close_all()
    child = os.fork()
    if child == 0:
        try:
            in_transaction(lambda: make("child"))
            connections.close_all()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert set(Tenant.objects.values_list("name", flat=True)) == {"parent", "child"}


# --- repeating ------------------------------------------------------------------------------


def failing(times: int, error: type[Exception]) -> tuple[Callable[[], str], list[int]]:
    """A change that fails at first, and its executions."""
    executions: list[int] = []

    def change() -> str:
        executions.append(1)
        if len(executions) <= times:
            raise error("lost")
        return in_transaction(lambda: make("a").name)

    return change, executions


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_a_change_is_repeated_once_exactly_where_a_connection_can_be_lost(error: type[Exception]):
    change, executions = failing(1, error)
    if ENGINE.connection_can_be_lost:
        assert repeat_after_lost_connection(change) == "a"
        assert len(executions) == 2
    else:
        with pytest.raises(error):
            repeat_after_lost_connection(change)
        assert len(executions) == 1


def test_a_change_that_fails_twice_or_for_another_reason_is_not_repeated_again():
    change, executions = failing(9, OperationalError)
    with pytest.raises(OperationalError):
        repeat_after_lost_connection(change)
    assert len(executions) == (2 if ENGINE.connection_can_be_lost else 1)
    change, executions = failing(9, IntegrityError)
    with pytest.raises(IntegrityError):
        repeat_after_lost_connection(change)
    assert len(executions) == 1


# --- any group commit -----------------------------------------------------------------------


class Recorder:
    """A group commit of numbers that waits before each commit until it may go on."""

    def __init__(self, fails: Callable[[list[int]], Exception | None] = lambda _: None) -> None:
        self.fails = fails
        self.batches: list[list[int]] = []
        self.outcomes: dict[int, Outcome] = {}
        self.entered = threading.Event()
        self.may_commit = threading.Event()
        self.group: GroupCommit[int, str] = GroupCommit(
            "recorder",
            self.commit,
            self.answer,
            batch_errors=UNAVAILABLE,
            size_of=lambda item: item,
            max_size=100,
        )

    def commit(self, batch: list[int]) -> list[str]:
        self.entered.set()
        assert self.may_commit.wait(10)
        self.batches.append(batch)
        if error := self.fails(batch):
            raise error
        return [f"stored {item}" for item in batch]

    def answer(self, batch: list[int], outcomes: Sequence[Outcome]) -> None:
        self.outcomes.update(zip(batch, outcomes, strict=True))

    def run(self, *items: int) -> None:
        """The first item alone, and all others while it is being committed."""
        first, *others = items
        self.group.put(first)
        assert self.entered.wait(10)
        for item in others:
            self.group.put(item)
        self.may_commit.set()
        self.group.stop()


def test_items_that_arrive_during_a_commit_are_committed_together():
    recorder = Recorder()
    recorder.run(1, 2, 3, 4)
    assert recorder.batches == [[1], [2, 3, 4]]
    assert recorder.outcomes == {item: (f"stored {item}", None) for item in (1, 2, 3, 4)}


def test_a_batch_ends_with_the_item_that_reaches_the_size_limit():
    recorder = Recorder()
    recorder.run(1, 60, 50, 2, 200, 3)
    assert recorder.batches == [[1], [60, 50], [2, 200], [3]]


def test_a_batch_has_at_most_64_items():
    recorder = Recorder()
    recorder.run(1, *[0] * 100)
    assert [len(batch) for batch in recorder.batches] == [1, 64, 36]


def test_a_batch_that_fails_is_repeated_item_by_item():
    recorder = Recorder(lambda batch: ValueError("no 3") if 3 in batch else None)
    recorder.run(1, 2, 3, 4)
    assert recorder.batches == [[1], [2, 3, 4], [2], [3], [4]]
    assert [item for item, (_, error) in recorder.outcomes.items() if error] == [3]


def test_a_database_that_is_away_fails_the_whole_batch_at_once():
    recorder = Recorder(lambda batch: OperationalError("away") if 3 in batch else None)
    recorder.run(1, 2, 3, 4)
    assert recorder.batches == [[1], [2, 3, 4]]
    assert [item for item, (_, error) in recorder.outcomes.items() if error] == [2, 3, 4]


def test_a_group_commit_that_was_stopped_starts_again_with_the_next_item():
    recorder = Recorder()
    recorder.run(1)
    recorder.run(2)
    assert recorder.batches == [[1], [2]]
    assert recorder.group.waiting == 0
