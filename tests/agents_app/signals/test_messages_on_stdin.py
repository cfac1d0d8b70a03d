"""Messages on the standard input of a running program, each delivered once."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.db import OperationalError, connection

from agents_app.database.transactions import in_transaction
from agents_app.models import Message, Run, RunOutput
from agents_app.runs import lifecycle
from agents_app.runs.job import Job
from agents_app.signals import messages
from agents_app.worker.execute import execute
from agents_app.worker.lease import Lease
from tests.agents_app.fleet import NOON, Fleet, at, live_run
from tests.agents_app.runners.conftest import contained, nothing_leaks, shell
from tests.agents_app.runners.containers import NewContained
from tests.agents_app.runners.programs import Program, Shell, Sink
from tests.agents_app.skills.reading import agent, problem
from tests.parts.waiting import wait_for

__all__ = ["contained", "nothing_leaks", "shell"]  # fixtures of those who run programs

UNTIL_STOP = (
    'while read -r line; do printf "got %s\\n" "$line"; [ "$line" = stop ] && exit 0; done; exit 9'
)


def hearing(program: Program) -> Program:
    program.spec = replace(program.spec, messages_on_stdin=True)
    program.start()
    wait_for(lambda: program.control.stdin_messages.is_open)
    return program


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("hello", b"hello\n"),
        ("a\tb ✉", "a\tb ✉\n".encode()),
        ("two\nlines", b'"two\\nlines"\n'),
        ('"quoted"', b'"\\"quoted\\""\n'),
    ],
)
def test_a_message_is_a_line_and_one_of_several_lines_is_json(text: str, line: bytes):
    assert messages.as_line(text) == line


@pytest.mark.usefixtures("nothing_leaks")
def test_a_program_reads_messages_as_they_come_and_no_prompt(shell: Shell):
    program = hearing(shell(UNTIL_STOP))
    assert program.control.stdin_messages.add(1, b"one\n")
    wait_for(lambda: not program.control.stdin_messages.undelivered)
    assert program.control.stdin_messages.delivered == [1]
    program.control.stdin_messages.forget([1])
    assert program.control.stdin_messages.is_settled
    program.control.stdin_messages.add(2, b"stop\n")
    assert program.join().outcome.exit_code == 0
    assert program.sink.text() == b"got one\ngot stop\n"
    assert program.control.stdin_messages.delivered == [2]
    assert not program.control.stdin_messages.add(3, b"too late\n")


@pytest.mark.usefixtures("nothing_leaks")
def test_messages_beyond_the_size_of_the_pipe_stay_undelivered(shell: Shell):
    program = hearing(shell("echo $$ > pid; sleep 0.3; head -c 300000 | wc -c"))
    for number in range(10):
        program.control.stdin_messages.add(number, b"x" * 99_999 + b"\n")
    assert program.join().sink.text().strip() == b"300000"
    unsaid = program.control.stdin_messages.undelivered
    assert unsaid == list(range(unsaid[0], 10))
    assert unsaid[0] == 3


@pytest.mark.usefixtures("nothing_leaks")
def test_a_message_left_in_the_pipe_is_undelivered(shell: Shell):
    """Guard: the kernel is asked what was fetched. Without that a message to a program that is
    about to end is lost without a record."""
    program = hearing(shell("dd bs=4 count=1 status=none; until [ -e go ]; do sleep 0.1; done"))
    telling = program.control.stdin_messages
    for number, line in enumerate([b"one\n", b"two\n", b"three\n"]):
        telling.add(number, line)
    wait_for(lambda: telling.delivered == [0])
    assert telling.undelivered == [1, 2]
    telling.forget([0])
    assert not telling.is_settled
    (program.cwd / "go").touch()
    program.join()
    assert (telling.delivered, telling.undelivered) == ([], [1, 2])


def test_a_program_that_closes_its_input_gets_no_more_messages_and_runs_on(shell: Shell):
    program = hearing(shell("exec <&-; echo done > closed; sleep 60"))
    program.note("closed")
    program.control.stdin_messages.add(1, b"hello\n")
    wait_for(lambda: not program.control.stdin_messages.is_open)
    assert program.control.stdin_messages.undelivered == [1]
    assert not program.ended


class Holding(Sink):
    """Keeps its runner busy with the first piece of output until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.is_fed, self.let_finish = threading.Event(), threading.Event()

    def feed(self, stream: int, data: bytes, at: float) -> None:
        self.is_fed.set()
        self.let_finish.wait(20)
        super().feed(stream, data, at)


def test_a_program_that_ends_during_a_message_ends_its_run(
    shell: Shell,
):
    """Both in one poll: that its input is closed, and that there is more to say."""
    program = shell(
        "until [ -e full ]; do sleep 0.02; done; echo on; until [ -e held ]; do sleep 0.02; done; "
        "exec <&-; echo done > closed; sleep 60"
    )
    program.sink = sink = Holding()
    hearing(program).control.stdin_messages.add(1, b"x" * 200_000 + b"\n")
    (program.cwd / "full").touch()
    assert sink.is_fed.wait(20)
    (program.cwd / "held").touch()
    program.note("closed")
    program.control.stdin_messages.add(2, b"more\n")
    sink.let_finish.set()
    wait_for(lambda: not program.control.stdin_messages.is_open)
    # From another thread: a runner that waits inside its control would keep this one, too.
    threading.Thread(target=program.control.stop, args=("enough", 0.0), daemon=True).start()
    assert program.join().outcome.kind == "stopped"
    assert program.control.stdin_messages.undelivered == [1, 2]


def test_a_full_pipe_held_open_by_a_stray_does_not_delay_the_end(shell: Shell):
    program = hearing(shell("until [ -e full ]; do sleep 0.02; done; exec 3<&0; sleep 60 & exit 0"))
    program.control.stdin_messages.add(1, b"x" * 200_000 + b"\n")
    (program.cwd / "full").touch()
    assert program.join().outcome.exit_code == 0
    assert program.control.stdin_messages.undelivered == [1]


def test_a_program_in_a_container_reads_messages_too(contained: NewContained):
    program = hearing(contained(UNTIL_STOP))
    program.control.stdin_messages.add(1, b"one\n")
    program.control.stdin_messages.add(2, b"stop\n")
    assert program.join().outcome.exit_code == 0
    assert program.sink.text() == b"got one\ngot stop\n"


# --- from the sender to the program -----------------------------------------------------------


@pytest.fixture
def lease(durable_fleet: Fleet) -> Iterator[Lease]:
    held = Lease("worker@here", 2)
    yield held
    held.end()


def _execute(run_id: int, lease: Lease) -> None:
    execute(run_id, lease.host)
    connection.close()


def test_a_message_to_a_running_run_arrives_once_and_counts_as_read(
    lease: Lease, durable_fleet: Fleet
):
    listener = durable_fleet.agent(command=["sh", "-c", UNTIL_STOP], messages_on_stdin=True)
    run = live_run(durable_fleet.enqueue(listener))
    thread = threading.Thread(target=_execute, args=(run.pk, lease), daemon=True)
    thread.start()
    wait_for(lambda: Run.objects.get().state == "running")
    for text in ("one", "two\nlines", "stop"):
        messages.send(listener, text, "ann", datetime.now(UTC))
    thread.join(20)
    pieces = RunOutput.objects.filter(run=run).order_by("seq")
    printed = b"".join(bytes(piece.data) for piece in pieces)
    assert printed == b'got one\ngot "two\\nlines"\ngot stop\n'
    assert Message.objects.filter(run=run, read_at__isnull=False).count() == 3


def test_delivered_messages_are_recorded_and_others_freed_after_a_database_outage(
    lease: Lease, durable_fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The first message is read, and the pipe has room for a part of the second."""
    script = f"read -r line; until [ -e {tmp_path}/over ]; do sleep 0.02; done"
    listener = durable_fleet.agent(command=["sh", "-c", script], messages_on_stdin=True)
    run = live_run(durable_fleet.enqueue(listener))
    thread = threading.Thread(target=_execute, args=(run.pk, lease), daemon=True)
    thread.start()
    wait_for(lambda: Run.objects.get().state == "running")
    said = messages.send(listener, "one", "ann", datetime.now(UTC))
    unsaid = messages.send(listener, "x" * 100_000, "ann", datetime.now(UTC))

    def rows() -> list[tuple[int, int | None, bool]]:
        found = Message.objects.order_by("pk")
        return [(one.pk, one.run_id, one.read_at is not None) for one in found]

    wait_for(lambda: rows() == [(said.pk, run.pk, True), (unsaid.pk, run.pk, False)])
    give_back, failures = messages.give_back, [OperationalError("the connection broke")]

    def give_back_later(run_id: int, numbers: Sequence[int]) -> int:
        if numbers and failures:
            raise failures.pop()
        return give_back(run_id, numbers)

    monkeypatch.setattr(messages, "give_back", give_back_later)
    (tmp_path / "over").touch()
    thread.join(20)
    assert not failures
    assert Run.objects.get().state == "succeeded"
    assert rows() == [(said.pk, run.pk, True), (unsaid.pk, None, False)]


def told(fleet: Fleet, *texts: str) -> tuple[Job, list[Message]]:
    """A run that goes on, and what its worker has taken to tell it."""
    listener = fleet.agent(scale=2, messages_on_stdin=True)
    job = fleet.start(fleet.enqueue(listener))
    for text in texts:
        messages.send(listener, text, "ann", NOON)
    return job, messages.take(Run.objects.get(pk=job.run_id))


def test_a_message_taken_and_not_delivered_is_freed(fleet: Fleet):
    job, (taken,) = told(fleet, "hello")
    assert messages.give_back(job.run_id, [taken.pk]) == 1
    fleet.finish(job)
    assert messages.sweep(at(1)) == 1
    assert Message.objects.get(pk=taken.pk).work_item is not None


def test_a_message_taken_for_one_run_is_not_read_by_another(fleet: Fleet):
    job, taken = told(fleet, "one", "two")
    other = Run.objects.get(pk=fleet.start(fleet.enqueue(taken[0].agent)).run_id)
    assert messages.read(other, NOON) == messages.take(other) == []
    # Its own it may take again: the answer to the first time may have been lost.
    assert messages.take(Run.objects.get(pk=job.run_id)) == taken
    assert messages.record_delivered(job.run_id, [taken[0].pk], at(1)) == 1
    assert messages.take(Run.objects.get(pk=job.run_id)) == taken[1:]


def test_undelivered_messages_of_a_dead_worker_become_work_and_delivered_ones_do_not(
    fleet: Fleet,
):
    job, (said, unsaid) = told(fleet, "one", "two")
    messages.record_delivered(job.run_id, [said.pk], NOON)
    assert messages.sweep(at(1)) == 0
    run = Run.objects.select_related("agent").get(pk=job.run_id)
    assert in_transaction(lambda: lifecycle.lose_run(run, at(2), "lost: its worker died"))
    assert messages.sweep(at(3)) == 1
    said.refresh_from_db()
    unsaid.refresh_from_db()
    assert (said.run_id, said.read_at, said.work_item) == (job.run_id, NOON, None)
    assert (unsaid.run_id, unsaid.read_at) == (None, at(3))
    assert unsaid.work_item is not None


def test_another_run_of_the_agent_reads_the_messages_of_a_lost_run(fleet: Fleet):
    job, taken = told(fleet, "one")
    other = Run.objects.get(pk=fleet.start(fleet.enqueue(taken[0].agent)).run_id)
    run = Run.objects.select_related("agent").get(pk=job.run_id)
    in_transaction(lambda: lifecycle.lose_run(run, at(2), "lost: its worker died"))
    assert messages.sweep(at(3)) == 0
    assert messages.take(other) == taken


def test_the_end_of_a_run_records_delivered_messages_and_frees_the_rest(fleet: Fleet):
    job, (said, unsaid) = told(fleet, "one", "two")
    messages.settle(job.run_id, [said.pk], [unsaid.pk], at(1))
    rows = Message.objects.order_by("pk").values_list("run", "read_at")
    assert list(rows) == [(job.run_id, at(1)), (None, None)]


def test_messages_on_stdin_are_refused_for_a_harness_that_reads_its_prompt_there():
    assert agent("command: mine\nmessages: stdin").messages == "stdin"
    assert agent("harness: shell\nmessages: stdin").messages == "stdin"
    assert agent("").messages == "inbox"
    said = problem(agent, "harness: codex\nmessages: stdin")
    assert "the harness 'codex' reads its prompt from standard input" in said
