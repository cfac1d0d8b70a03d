"""When a change counts: on disk when the caller goes on, alone in its failure, told afterwards."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from agents_app.database import transactions
from agents_app.database.transactions import in_transaction
from agents_app.models import Agent, Tenant

pytestmark = pytest.mark.django_db(transaction=True)


def seen_from_elsewhere(name: str) -> bool:
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


def together(*changes: Any) -> list[Any]:
    """Committed as one group; the result or the error of each."""
    batch: list[transactions.Change] = [(change, SimpleQueue()) for change in changes]
    transactions._commit(batch)
    answers = [reply.get_nowait() for _, reply in batch]
    return [result if error is None else error for result, error in answers]


# --- one change -----------------------------------------------------------------------------


def test_a_change_is_on_disk_when_its_caller_goes_on():
    in_transaction(lambda: make("a"))
    assert seen_from_elsewhere("a")


def test_the_result_of_a_change_comes_back():
    assert in_transaction(lambda: make("a")).name == "a"


def test_a_change_that_fails_leaves_nothing_and_tells_its_caller():
    with pytest.raises(ValueError, match="no a"):
        in_transaction(lambda: fail("a"))
    assert not Tenant.objects.exists()


def test_after_a_failure_the_next_change_works():
    with pytest.raises(ValueError, match="no a"):
        in_transaction(lambda: fail("a"))
    in_transaction(lambda: make("b"))
    assert seen_from_elsewhere("b")


def test_a_change_within_a_transaction_belongs_to_it():
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        in_transaction(lambda: make("a"))
        raise ZeroDivisionError
    assert not Tenant.objects.exists()


def test_what_waits_for_the_commit_runs_after_it_and_before_the_caller_goes_on():
    seen: list[bool] = []

    def change() -> None:
        make("a")
        transaction.on_commit(lambda: seen.append(seen_from_elsewhere("a")))

    in_transaction(change)
    assert seen == [True]


def test_what_waits_for_the_commit_never_runs_if_there_is_none():
    seen: list[str] = []

    def change() -> None:
        transaction.on_commit(lambda: seen.append("told"))
        raise ValueError

    with pytest.raises(ValueError):
        in_transaction(change)
    assert seen == []


def test_many_threads_write_at_once_and_each_gets_its_own_answer():
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


def test_one_failing_change_does_not_harm_the_others():
    results = together(lambda: make("a").name, lambda: fail("b"), lambda: make("c").name)
    assert (results[0], str(results[1]), results[2]) == ("a", "no b", "c")
    assert set(Tenant.objects.values_list("name", flat=True)) == {"a", "c"}


def test_a_change_the_database_refuses_does_not_harm_the_others():
    results = together(lambda: make("a").name, lambda: make("a"), lambda: make("c").name)
    assert isinstance(results[1], IntegrityError)
    assert set(Tenant.objects.values_list("name", flat=True)) == {"a", "c"}


def test_a_change_the_database_refuses_only_at_the_commit_does_not_harm_the_others():
    """Foreign keys are looked at when all is written: somebody's row is gone by then."""

    def of_nobody() -> None:
        Agent.objects.create(tenant_id=12345, name="orphan")

    results = together(lambda: make("a").name, of_nobody, lambda: make("c").name)
    assert isinstance(results[1], IntegrityError)
    assert (results[0], results[2]) == ("a", "c")
    assert set(Tenant.objects.values_list("name", flat=True)) == {"a", "c"}


def test_only_the_changes_that_happened_are_told():
    told: list[str] = []

    def change(name: str, works: bool) -> None:
        transaction.on_commit(lambda: told.append(name))
        make(name) if works else fail(name)

    together(lambda: change("a", True), lambda: change("b", False), lambda: change("c", True))
    assert told == ["a", "c"]


def test_a_change_that_was_committed_is_never_called_a_failure():
    """Somebody who is told afterwards raises; the rows are there all the same."""

    def change() -> str:
        transaction.on_commit(lambda: 1 / 0)
        return make("a").name

    assert together(change, lambda: make("b").name) == ["a", "b"]


def test_later_changes_of_a_group_see_the_earlier_ones():
    assert together(lambda: make("a") and None, Tenant.objects.count)[1] == 1


# --- the writing thread ---------------------------------------------------------------------


def test_on_sqlite_one_thread_writes_for_all_and_on_postgresql_each_for_itself():
    def write(_: int) -> tuple[int, int]:
        try:
            return threading.get_ident(), in_transaction(threading.get_ident)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        pairs = list(threads.map(write, range(50)))
    if connection.vendor == "sqlite":
        assert len({writer for _, writer in pairs}) == 1
        assert all(caller != writer for caller, writer in pairs)
    else:
        assert all(caller == writer for caller, writer in pairs)


def test_a_writer_that_has_to_wait_for_another_waits():
    """On SQLite the lock is held elsewhere for a moment; on PostgreSQL a row is."""
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
