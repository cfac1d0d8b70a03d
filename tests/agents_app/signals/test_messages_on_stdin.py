"""An agent that asked for it is told messages on its standard input while it runs, each once."""

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
    program.spec = replace(program.spec, hears=True)
    program.start()
    wait_for(lambda: program.control.telling.heard)
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
def test_a_program_hears_lines_as_they_come_and_no_prompt(shell: Shell):
    program = hearing(shell(UNTIL_STOP))
    assert program.control.telling.add(1, b"one\n")
    wait_for(lambda: not program.control.telling.unsaid)
    assert program.control.telling.said == [1]
    program.control.telling.noted([1])
    assert program.control.telling.is_settled
    program.control.telling.add(2, b"stop\n")
    assert program.join().outcome.exit_code == 0
    assert program.sink.text() == b"got one\ngot stop\n"
    assert program.control.telling.said == [2]
    assert not program.control.telling.add(3, b"too late\n")


@pytest.mark.usefixtures("nothing_leaks")
def test_more_than_a_pipe_holds_waits_until_it_is_read_and_the_rest_is_known(shell: Shell):
    program = hearing(shell("echo $$ > pid; sleep 0.3; head -c 300000 | wc -c"))
    for number in range(10):
        program.control.telling.add(number, b"x" * 99_999 + b"\n")
    assert program.join().sink.text().strip() == b"300000"
    unsaid = program.control.telling.unsaid
    assert unsaid == list(range(unsaid[0], 10))
    assert unsaid[0] == 3


@pytest.mark.usefixtures("nothing_leaks")
def test_what_a_program_left_in_the_pipe_was_not_said(shell: Shell):
    """Guard: the kernel is asked what was fetched. Without that a message to a program that is
    about to end is gone, and nobody knows."""
    program = hearing(shell("dd bs=4 count=1 status=none; until [ -e go ]; do sleep 0.1; done"))
    telling = program.control.telling
    for number, line in enumerate([b"one\n", b"two\n", b"three\n"]):
        telling.add(number, line)
    wait_for(lambda: telling.said == [0])
    assert telling.unsaid == [1, 2]
    telling.noted([0])
    assert not telling.is_settled
    (program.cwd / "go").touch()
    program.join()
    assert (telling.said, telling.unsaid) == ([], [1, 2])


def test_a_program_that_closes_its_input_hears_nothing_more_and_goes_on(shell: Shell):
    program = hearing(shell("exec <&-; echo done > closed; sleep 60"))
    program.note("closed")
    program.control.telling.add(1, b"hello\n")
    wait_for(lambda: not program.control.telling.heard)
    assert program.control.telling.unsaid == [1]
    assert not program.ended


class Holding(Sink):
    """Keeps its runner busy with the first piece of output until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()

    def feed(self, stream: int, data: bytes, at: float) -> None:
        self.let_go.wait(20)
        super().feed(stream, data, at)


def test_a_reader_that_goes_as_the_next_message_comes_keeps_nobody_from_ending_the_run(
    shell: Shell,
):
    """Both in one poll: that its input is closed, and that there is more to say."""
    program = shell(
        "until [ -e full ]; do sleep 0.02; done; echo on; exec <&-; echo done > closed; sleep 60"
    )
    program.sink = sink = Holding()
    hearing(program).control.telling.add(1, b"x" * 200_000 + b"\n")
    (program.cwd / "full").touch()
    program.note("closed")
    program.control.telling.add(2, b"more\n")
    sink.let_go.set()
    wait_for(lambda: not program.control.telling.heard)
    # From another thread: a runner that waits inside its control would keep this one, too.
    threading.Thread(target=program.control.stop, args=("enough", 0.0), daemon=True).start()
    assert program.join().outcome.kind == "stopped"
    assert program.control.telling.unsaid == [1, 2]


def test_a_full_pipe_that_someone_left_behind_holds_open_does_not_spoil_the_end(shell: Shell):
    program = hearing(shell("until [ -e full ]; do sleep 0.02; done; exec 3<&0; sleep 60 & exit 0"))
    program.control.telling.add(1, b"x" * 200_000 + b"\n")
    (program.cwd / "full").touch()
    assert program.join().outcome.exit_code == 0
    assert program.control.telling.unsaid == [1]


def test_a_program_in_a_container_hears_them_too(contained: NewContained):
    program = hearing(contained(UNTIL_STOP))
    program.control.telling.add(1, b"one\n")
    program.control.telling.add(2, b"stop\n")
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


def test_what_is_sent_while_it_runs_arrives_once_and_counts_as_read(
    lease: Lease, durable_fleet: Fleet
):
    listener = durable_fleet.agent(command=["sh", "-c", UNTIL_STOP], messages_on_stdin=True)
    run = live_run(durable_fleet.ask(listener))
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


def test_a_message_counts_as_read_once_said_and_is_given_back_though_the_database_was_away(
    lease: Lease, durable_fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The first message is read, and the pipe has room for a part of the second."""
    script = f"read -r line; until [ -e {tmp_path}/over ]; do sleep 0.02; done"
    listener = durable_fleet.agent(command=["sh", "-c", script], messages_on_stdin=True)
    run = live_run(durable_fleet.ask(listener))
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
    job = fleet.start(fleet.ask(listener))
    for text in texts:
        messages.send(listener, text, "ann", NOON)
    return job, messages.take(Run.objects.get(pk=job.run_id))


def test_what_was_taken_for_a_run_and_never_said_is_given_back(fleet: Fleet):
    job, (taken,) = told(fleet, "hello")
    assert messages.give_back(job.run_id, [taken.pk]) == 1
    fleet.finish(job)
    assert messages.sweep(at(1)) == 1
    assert Message.objects.get(pk=taken.pk).work_item is not None


def test_what_one_run_is_being_told_no_other_run_gets(fleet: Fleet):
    job, taken = told(fleet, "one", "two")
    other = Run.objects.get(pk=fleet.start(fleet.ask(taken[0].agent)).run_id)
    assert messages.read(other, NOON) == messages.take(other) == []
    # Its own it may take again: the answer to the first time may have been lost.
    assert messages.take(Run.objects.get(pk=job.run_id)) == taken
    assert messages.note_said(job.run_id, [taken[0].pk], at(1)) == 1
    assert messages.take(Run.objects.get(pk=job.run_id)) == taken[1:]


def test_what_a_worker_had_taken_and_not_said_when_it_died_becomes_work_and_the_rest_does_not(
    fleet: Fleet,
):
    job, (said, unsaid) = told(fleet, "one", "two")
    messages.note_said(job.run_id, [said.pk], NOON)
    assert messages.sweep(at(1)) == 0
    run = Run.objects.select_related("agent").get(pk=job.run_id)
    assert in_transaction(lambda: lifecycle.lose(run, at(2), "lost: its worker died"))
    assert messages.sweep(at(3)) == 1
    said.refresh_from_db()
    unsaid.refresh_from_db()
    assert (said.run_id, said.read_at, said.work_item) == (job.run_id, NOON, None)
    assert (unsaid.run_id, unsaid.read_at) == (None, at(3))
    assert unsaid.work_item is not None


def test_another_run_of_the_agent_hears_what_a_lost_one_did_not(fleet: Fleet):
    job, taken = told(fleet, "one")
    other = Run.objects.get(pk=fleet.start(fleet.ask(taken[0].agent)).run_id)
    run = Run.objects.select_related("agent").get(pk=job.run_id)
    in_transaction(lambda: lifecycle.lose(run, at(2), "lost: its worker died"))
    assert messages.sweep(at(3)) == 0
    assert messages.take(other) == taken


def test_the_end_of_a_run_says_what_it_was_told_and_gives_back_the_rest(fleet: Fleet):
    job, (said, unsaid) = told(fleet, "one", "two")
    messages.settle(job.run_id, [said.pk], [unsaid.pk], at(1))
    rows = Message.objects.order_by("pk").values_list("run", "read_at")
    assert list(rows) == [(job.run_id, at(1)), (None, None)]


def test_an_agent_says_so_in_its_file_unless_its_tool_reads_its_prompt_there():
    assert agent("command: mine\nmessages: stdin").messages == "stdin"
    assert agent("harness: shell\nmessages: stdin").messages == "stdin"
    assert agent("").messages == "inbox"
    said = problem(agent, "harness: codex\nmessages: stdin")
    assert "the harness 'codex' reads its prompt there" in said
