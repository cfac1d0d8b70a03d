"""An agent that asked for it is told messages on its standard input while it runs, each once."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.db import connection

from agents_app import messages
from agents_app.execute import execute
from agents_app.lease import Lease
from agents_app.models import Message, Run, RunOutput
from tests.agents.fleet import Fleet, live_run
from tests.agents.runners.conftest import contained, nothing_leaks, shell
from tests.agents.runners.containers import NewContained
from tests.agents.runners.programs import Program, Shell
from tests.agents.skills.reading import agent, problem
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
    program.control.telling.add(2, b"stop\n")
    assert program.join().outcome.exit_code == 0
    assert program.sink.text() == b"got one\ngot stop\n"
    assert not program.control.telling.add(3, b"too late\n")


@pytest.mark.usefixtures("nothing_leaks")
def test_more_than_a_pipe_holds_waits_until_it_is_read_and_the_rest_is_known(shell: Shell):
    program = hearing(shell("echo $$ > pid; sleep 0.3; head -c 300000 | wc -c"))
    for number in range(10):
        program.control.telling.add(number, b"x" * 99_999 + b"\n")
    assert program.join().sink.text().strip() == b"300000"
    unsaid = program.control.telling.unsaid
    assert unsaid == list(range(unsaid[0], 10))
    assert unsaid[0] >= 3


def test_a_program_that_closes_its_input_hears_nothing_more_and_goes_on(shell: Shell):
    program = hearing(shell("exec <&-; echo done > closed; sleep 60"))
    program.note("closed")
    program.control.telling.add(1, b"hello\n")
    wait_for(lambda: not program.control.telling.heard)
    assert program.control.telling.unsaid == [1]
    assert not program.ended


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
    thread = threading.Thread(target=_execute, args=(run.pk, lease))
    thread.start()
    wait_for(lambda: Run.objects.get().state == "running")
    for text in ("one", "two\nlines", "stop"):
        messages.send(listener, text, "ann", datetime.now(UTC))
    thread.join(20)
    pieces = RunOutput.objects.filter(run=run).order_by("seq")
    printed = b"".join(bytes(piece.data) for piece in pieces)
    assert printed == b'got one\ngot "two\\nlines"\ngot stop\n'
    assert Message.objects.filter(run=run, read_at__isnull=False).count() == 3


def test_what_was_taken_for_a_run_and_never_said_is_given_back(fleet: Fleet):
    listener = fleet.agent()
    job = fleet.start(fleet.ask(listener))
    sent = messages.send(listener, "hello", "ann", datetime.now(UTC))
    (read,) = messages.read(Run.objects.get(pk=job.run_id), datetime.now(UTC))
    assert messages.give_back(job.run_id, [read.pk]) == 1
    fleet.finish(job)
    assert messages.sweep(datetime.now(UTC)) == 1
    assert Message.objects.get(pk=sent.pk).work_item is not None


def test_an_agent_says_so_in_its_file_unless_its_tool_reads_its_prompt_there():
    assert agent("command: mine\nmessages: stdin").messages == "stdin"
    assert agent("harness: shell\nmessages: stdin").messages == "stdin"
    assert agent("").messages == "inbox"
    said = problem(agent, "harness: codex\nmessages: stdin")
    assert "the harness 'codex' reads its prompt there" in said
