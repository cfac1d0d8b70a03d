"""`/schedule` lines in the output of a run: carried out while it runs, answered in its log."""

import threading
import time

import pytest

from agents_app.models import Agent, Run, RunOutput
from agents_app.signals import schedule_lines
from agents_app.signals.schedule_lines import MAX_LINES_PER_RUN, ScheduleLineWatcher
from agents_app.worker.execute import Host
from tests.agents_app.executing import Executing, do, printed, shell
from tests.agents_app.fleet import NOON, Fleet
from tests.parts.waiting import wait_for


def finished(fleet: Fleet, agent: Agent) -> Run:
    return do(fleet, Host(fleet.worker().pk, lambda: NOON), agent)


def writer(fleet: Fleet, output: str, **columns: object) -> Agent:
    script = f"cat <<'END'\n{output}\nEND"
    return fleet.agent("research", timezone="UTC", command=shell(script), **columns)


def test_a_schedule_line_in_the_output_is_carried_out_and_answered_in_the_log(durable_fleet: Fleet):
    agent = writer(durable_fleet, "thinking\n/schedule in 1 hour: look again\nbye")
    run = finished(durable_fleet, agent)
    schedule = agent.schedules.get()
    assert (schedule.text, schedule.prompt) == ("in 1 hour", "look again")
    assert printed(run.pk) == "thinking\n/schedule in 1 hour: look again\nbye\n"
    answer = printed(run.pk, RunOutput.Stream.MARKER)
    assert answer.startswith("[/schedule create in 1 hour: look again]\nOK: scheduled #")
    assert answer.endswith("  message: look again\n[END SCHEDULE]\n")
    # What the program printed, without the answer.
    assert run.output_bytes == len(printed(run.pk))


def test_a_schedule_line_is_answered_while_the_run_is_running(durable_fleet: Fleet):
    script = "echo '/schedule in 1 hour: x'; printf 'half a line'; sleep 30"
    executing = Executing(durable_fleet, durable_fleet.agent(command=shell(script)))
    try:
        wait_for(lambda: "[END SCHEDULE]" in printed(executing.run.pk, 0), 15)
        assert printed(executing.run.pk, 0).startswith("\n[/schedule create")
    finally:
        executing.close()


def test_only_lines_that_begin_with_the_command_outside_fences_are_schedule_lines(
    durable_fleet: Fleet,
):
    """Guard: prompt injection. What an agent quotes in a fence or indents is not obeyed."""
    quoted = "/schedule in 1 hour: quoted"
    output = (
        f" {quoted}\n> {quoted}\nSay {quoted}\n```\n{quoted}\n```\n~~~ sh\n{quoted}\n```\n"
        f"{quoted}\n~~~\n/schedules in 1 hour: x\n\t{quoted}\n/schedule in 2 hours: meant"
    )
    agent = writer(durable_fleet, output)
    finished(durable_fleet, agent)
    assert list(agent.schedules.values_list("prompt", flat=True)) == ["meant"]


def test_schedule_lines_of_an_agent_that_disables_them_are_ignored(durable_fleet: Fleet):
    agent = writer(durable_fleet, "/schedule in 1 hour: x", schedules_from_output=False)
    run = finished(durable_fleet, agent)
    assert agent.schedules.count() == 0
    assert printed(run.pk, 0) == ""


def test_a_run_may_write_twenty_schedule_lines(durable_fleet: Fleet):
    agent = writer(durable_fleet, "\n".join(["/schedule list"] * 30))
    answer = printed(finished(durable_fleet, agent).pk, 0)
    assert answer.count("OK: 0 schedules") == MAX_LINES_PER_RUN == 20
    assert answer.count("ERR: a run may write at most 20 schedule lines") == 1


def test_the_lines_of_a_run_are_carried_out_in_their_order(durable_fleet: Fleet):
    """Guard: one line begins after the line before it. On two threads the resume of a pair can
    come before its pause, and the schedule stays paused."""
    agent = durable_fleet.agent("research", timezone="UTC")
    schedule = durable_fleet.schedule(agent)
    pair = f"/schedule pause {schedule.pk}\n/schedule resume {schedule.pk}"
    agent.command = shell(f"cat <<'END'\n{chr(10).join([pair] * 10)}\nEND")
    agent.save()
    answer = printed(finished(durable_fleet, agent).pk, 0)
    said = [line.split()[1] for line in answer.splitlines() if line.startswith(("OK", "ERR"))]
    assert said == ["paused", "resumed"] * 10, answer
    schedule.refresh_from_db()
    assert schedule.state == "active"


def test_a_slow_line_of_one_run_delays_only_the_later_lines_of_this_run(
    monkeypatch: pytest.MonkeyPatch,
):
    """Guard: each run has a sequence of its own, and a sequence uses one thread at a time."""
    go_on = threading.Event()
    done: list[str] = []

    def carry_out(_agent: int, run_id: int, line: str, _at: float) -> str:
        if line.endswith("slow"):
            assert go_on.wait(20)
        done.append(f"{run_id} {line.split()[-1]}")
        return f"[{line}]\n"

    monkeypatch.setattr(schedule_lines, "_carry_out", carry_out)
    first, second = ScheduleLineWatcher(Log(), 1, 1), ScheduleLineWatcher(Log(), 1, 2)
    first.feed(1, b"/schedule slow\n/schedule a\n/schedule b\n", 0)
    second.feed(1, b"/schedule c\n/schedule d\n", 0)
    second.finish()
    assert done == ["2 c", "2 d"]
    go_on.set()
    first.finish()
    assert done[2:] == ["1 slow", "1 a", "1 b"]


def test_a_line_on_stderr_is_not_a_schedule_line(durable_fleet: Fleet):
    agent = durable_fleet.agent(command=shell("echo '/schedule in 1 hour: x' >&2"))
    run = finished(durable_fleet, agent)
    assert agent.schedules.count() == 0
    assert printed(run.pk, 0) == ""


class Log:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def feed(self, stream: int, data: bytes, at: float) -> None:
        self.said.append(data.decode())

    def remark(self, text: str, at: float) -> None:
        self.said.append(text)

    def flush(self) -> None:
        pass


def test_a_database_that_does_not_answer_does_not_block_the_program(
    monkeypatch: pytest.MonkeyPatch,
):
    """Guard: the supervising thread reads on. Obey on it and the second line comes late."""
    answers = threading.Event()

    def slow(*_: object) -> str:
        assert answers.wait(20)
        return "[answer]\n"

    monkeypatch.setattr(schedule_lines, "_carry_out", slow)
    monkeypatch.setattr(schedule_lines, "LAST_ANSWERS_SECONDS", 0.3)
    log = Log()
    watch = ScheduleLineWatcher(log, 1, 1)
    began_at = time.monotonic()
    watch.feed(1, b"/schedule list\n", 0)
    watch.feed(1, b"go on", 0)
    watch.flush()
    watch.finish()
    assert time.monotonic() - began_at < 5
    assert log.said[:2] == ["/schedule list\n", "go on"]
    (unanswered,) = log.said[2:]
    assert unanswered.startswith("\n[/schedule list]\nERR: the run ended before the line was ans")
    answers.set()
    watch.flush()
    assert len(log.said) == 3


def test_an_exception_in_a_schedule_line_becomes_an_answer(
    durable_fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(schedule_lines, "run_schedule_line", broken)
    run = finished(durable_fleet, writer(durable_fleet, "/schedule list"))
    assert run.state == "succeeded"
    assert "ERR: it could not be done (RuntimeError)" in printed(run.pk, 0)


@pytest.mark.parametrize("size", [1, 2, 7, 16, 1000])
def test_the_same_schedule_lines_are_found_however_the_output_is_split(
    monkeypatch: pytest.MonkeyPatch, size: int
):
    """Guard: most of an output is not cut into lines at all. Drop its last one and this is red."""
    monkeypatch.setattr(schedule_lines, "_carry_out", lambda _agent, _run, line, _at: f"<{line}>")
    fenced = b"```\n/schedule 2\nd\n```\n\n"
    output = b"a\nb\n/schedule 1\nc\n%s/schedule 3\r\ne\n x/schedule 4\n/schedule 5" % fenced
    log = Log()
    watch = ScheduleLineWatcher(log, 1, 1)
    for start in range(0, len(output), size):
        watch.feed(1, output[start : start + size], 0)
        watch.feed(2, b"/schedule err\n", 0)
    watch.finish()
    answers = "".join(text for text in log.said if "<" in text).replace("\n", "")
    assert answers == "</schedule 1></schedule 3></schedule 5>"
