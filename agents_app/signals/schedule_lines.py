"""Schedule lines: `/schedule` lines in the output of a run, or sent as a signal, and the answers.

[/schedule create in 1 hour: review the deploy ...]
OK: scheduled #17 in 1 hour (2026-05-08 14:23) → research
  message: review the deploy status and report regressions
[END SCHEDULE]
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from typing import Protocol

import structlog
from django.db import connection

from agents_app.errors import DroverError, Refused, TriggerParseError
from agents_app.models import Agent, Run, Schedule
from agents_app.output import STDOUT, LineSplitter
from agents_app.runners import OutputSink
from agents_app.schedules import edit
from agents_app.triggers import (
    ScheduleLine,
    ScheduleLineError,
    ScheduleLineFinder,
    parse_schedule_line,
    zone,
)

log = structlog.get_logger("drover.schedule_lines")
COMMAND = "/schedule"
OPEN = (Schedule.State.ACTIVE, Schedule.State.PAUSED)
# An agent that schedules itself twice in each run would otherwise never stop.
MAX_OPEN = 100
MAX_LISTED = 50
MAX_SHOWN_LENGTH = 60
MAX_LINES_PER_RUN = 20
# How long a run that has ended waits for the answers to its last lines.
LAST_ANSWERS_SECONDS = 10.0
_UNANSWERED = (
    "ERR: the run ended before the line was answered; it may not have been carried out: "
    "look at the list of schedules"
)
# A line without one of these is neither a schedule line nor the edge of a fenced block.
_MARKS = (b"/schedule", b"```", b"~~~")
_threads = ThreadPoolExecutor(2, thread_name_prefix="schedule-lines")


# --- one line -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScheduleLineAnswer:
    ok: bool
    text: str
    schedule_id: int | None = None


def run_schedule_line(agent: Agent, line: str, now: datetime, by: str = "") -> ScheduleLineAnswer:
    """Carry out a line, with or without the word /schedule; an error is returned as an answer."""
    command = line if line.split(maxsplit=1)[:1] == [COMMAND] else f"{COMMAND} {line}"
    parsed = parse_schedule_line(command, agent.name, lambda key: _find(agent, key) is not None)
    if isinstance(parsed, ScheduleLineError):
        text = answer_block(command, f"ERR: {parsed.message}", *parsed.accepted.splitlines())
        return ScheduleLineAnswer(False, text)
    shown = command
    if parsed.op == "create":
        shown = f"{COMMAND} create {parsed.phrase}: {parsed.message}"
    try:
        schedule, lines = OPERATIONS[parsed.op](agent, parsed, by or f"agent {agent.name}", now)
    except TriggerParseError as error:
        text = answer_block(shown, f"ERR: {error}", *error.accepted.splitlines())
        return ScheduleLineAnswer(False, text)
    except DroverError as error:
        return ScheduleLineAnswer(False, answer_block(shown, f"ERR: {error}"))
    return ScheduleLineAnswer(True, answer_block(shown, *lines), schedule.pk if schedule else None)


def answer_block(command: str, first: str, *more: str) -> str:
    lines = (f"[{_shortened(command)}]", first, *(f"  {line}" for line in more), "[END SCHEDULE]")
    return "\n".join(lines) + "\n"


# --- operations -----------------------------------------------------------------------------

OperationResult = tuple[Schedule | None, tuple[str, ...]]


def _create(agent: Agent, line: ScheduleLine, by: str, now: datetime) -> OperationResult:
    if agent.schedules.filter(state__in=OPEN).count() >= MAX_OPEN:
        raise Refused(f"{agent.name} has {MAX_OPEN} schedules: cancel some before you add another")
    draft = edit.Draft(text=line.phrase, prompt=line.message)
    schedule = edit.create(agent, draft, by, now)
    about = f"OK: scheduled #{schedule.pk} {line.phrase} ({_next_fire(schedule)}) → {agent.name}"
    return schedule, (about, f"message: {_one_line(line.message)}")


def _list(agent: Agent, _line: ScheduleLine, _by: str, _now: datetime) -> OperationResult:
    found = Schedule.objects.filter(tenant=agent.tenant_id, state__in=OPEN)
    shown = found.select_related("agent").order_by("pk")[:MAX_LISTED]
    count = found.count()
    lines = [_listed(schedule) for schedule in shown]
    if count > MAX_LISTED:
        lines.append(f"... and {count - MAX_LISTED} more")
    return None, (f"OK: {count} schedule{'' if count == 1 else 's'}", *lines)


def _cancel(agent: Agent, line: ScheduleLine, by: str, now: datetime) -> OperationResult:
    schedule = _get(agent, line)
    edit.cancel(schedule, by, now)
    return schedule, (f"OK: canceled #{schedule.pk} {schedule.text}",)


def _pause(agent: Agent, line: ScheduleLine, by: str, now: datetime) -> OperationResult:
    schedule = _get(agent, line)
    if not edit.pause(schedule, by, now):
        raise Refused(f"#{schedule.pk} is {schedule.state}: only an active one can be paused")
    return schedule, (f"OK: paused #{schedule.pk} {schedule.text}",)


def _resume(agent: Agent, line: ScheduleLine, by: str, now: datetime) -> OperationResult:
    schedule = _get(agent, line)
    if not edit.resume(schedule, by, now):
        raise Refused(f"#{schedule.pk} is {schedule.state}: only a paused one can be resumed")
    schedule.refresh_from_db()
    return schedule, (f"OK: resumed #{schedule.pk} {schedule.text} ({_next_fire(schedule)})",)


OPERATIONS: dict[str, Callable[[Agent, ScheduleLine, str, datetime], OperationResult]] = {
    "create": _create,
    "list": _list,
    "cancel": _cancel,
    "pause": _pause,
    "resume": _resume,
}


def _find(agent: Agent, key: int | None) -> Schedule | None:
    return Schedule.objects.filter(tenant=agent.tenant_id, pk=key or 0).first()


def _get(agent: Agent, line: ScheduleLine) -> Schedule:
    schedule = _find(agent, line.id)
    if schedule is None:
        raise Refused(f"there is no schedule #{line.id} any more")
    return schedule


def _next_fire(schedule: Schedule) -> str:
    """In the time zone of the schedule: the one in the phrase, else the agent's."""
    if schedule.next_fire_at is None:
        return "not armed"
    return f"{schedule.next_fire_at.astimezone(zone(schedule.timezone)):%Y-%m-%d %H:%M}"


def _listed(schedule: Schedule) -> str:
    when = f"next {_next_fire(schedule)}" if schedule.state == Schedule.State.ACTIVE else "paused"
    about = f"#{schedule.pk} {schedule.text or schedule.expression}, {when} → {schedule.agent.name}"
    return f"{about}: {_shortened(schedule.prompt)}" if schedule.prompt else about


def _one_line(text: str) -> str:
    """Without newlines, so that no part of the text looks like the end of the block."""
    return " ".join(text.split())


def _shortened(text: str) -> str:
    line = _one_line(text)
    return line if len(line) <= MAX_SHOWN_LENGTH else f"{line[:MAX_SHOWN_LENGTH].rstrip()} ..."


# --- the output of a run --------------------------------------------------------------------


class RemarkSink(OutputSink, Protocol):
    def remark(self, text: str, at: float) -> None: ...


class LineSequence:
    """Carries out the lines of one run on the shared threads, each after the line before it.

    A line gives its thread back before the next line begins, so that runs share the threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: deque[tuple[Future[str], Callable[[], str]]] = deque()
        self._busy = False

    def submit(self, work: Callable[[], str]) -> Future[str]:
        future: Future[str] = Future()
        with self._lock:
            self._waiting.append((future, work))
            idle, self._busy = not self._busy, True
        if idle:
            _threads.submit(self._carry_out_first)
        return future

    def _carry_out_first(self) -> None:
        future, work = self._waiting.popleft()
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)
        with self._lock:
            more = self._busy = bool(self._waiting)
        if more:
            _threads.submit(self._carry_out_first)


class ScheduleLineWatcher:
    """A sink that passes all output on, carries out the schedule lines in stdout and writes the
    answers to the log of the run. It never raises.

    The thread that supervises the program only finds the lines. They are carried out on other
    threads, because the database may block, and a program whose output is not read blocks too."""

    def __init__(self, sink: RemarkSink, agent_id: int, run_id: int) -> None:
        self._sink = sink
        self._agent_id, self._run_id = agent_id, run_id
        self._lines = LineSplitter(self._on_line)
        self._finder = ScheduleLineFinder()
        self._count = 0
        self._answers: deque[tuple[Future[str], str, float]] = deque()
        self._sequence = LineSequence()
        self._inside_line = False
        self._last_at = 0.0

    def feed(self, stream: int, data: bytes, at: float) -> None:
        self._last_at = at
        self._inside_line = not data.endswith(b"\n")
        self._sink.feed(stream, data, at)
        if stream == STDOUT:
            self._lines.feed(_without_inner_lines(data), at)

    def flush(self) -> None:
        self._write_answers()
        self._sink.flush()

    def finish(self) -> None:
        """Wait for the answers to the last lines, and write an error for each line without one.

        The run must still belong to this worker."""
        self._lines.finish(self._last_at)
        if self._answers:
            wait([future for future, *_ in self._answers], LAST_ANSWERS_SECONDS)
            self._write_answers()
        if self._answers:
            log.warning("schedule_line.unanswered", run_id=self._run_id, lines=len(self._answers))
        for _, line, at in self._answers:
            self._write(answer_block(line, _UNANSWERED), at)
        self._answers.clear()

    def _on_line(self, text: bytes, at: float) -> None:
        line = self._finder.schedule_line_in(text.decode(errors="replace"))
        if line is None:
            return
        self._count += 1
        if self._count <= MAX_LINES_PER_RUN:
            work = partial(_carry_out, self._agent_id, self._run_id, line, at)
            self._answers.append((self._sequence.submit(work), line, at))
        elif self._count == MAX_LINES_PER_RUN + 1:
            problem = f"ERR: a run may write at most {MAX_LINES_PER_RUN} schedule lines"
            self._write(answer_block(line, problem), at)

    def _write_answers(self) -> None:
        while self._answers and self._answers[0][0].done():
            future, _, at = self._answers.popleft()
            self._write(future.result(), at)

    def _write(self, text: str, at: float) -> None:
        self._sink.remark(f"\n{text}" if self._inside_line else text, at)
        self._inside_line = False


def _without_inner_lines(data: bytes) -> bytes:
    """Of data without a mark only the first line, which may end an open line, and the last, which
    may be incomplete: splitting the output of a fast program costs more than reading it."""
    first = data.find(b"\n") + 1
    if first == 0 or any(mark in data for mark in _MARKS):
        return data
    return data[:first] + data[data.rindex(b"\n") + 1 :]


def _carry_out(agent_id: int, run_id: int, line: str, at: float) -> str:
    try:
        if not Run.objects.filter(pk=run_id, state=Run.State.RUNNING).exists():
            return answer_block(line, "ERR: this run has ended")
        agent = Agent.objects.get(pk=agent_id)
        return run_schedule_line(agent, line, datetime.fromtimestamp(at, UTC), f"run {run_id}").text
    except Exception as error:
        log.exception("schedule_line.failed", run_id=run_id)
        return answer_block(line, f"ERR: it could not be done ({type(error).__name__}); ask again")
    finally:
        connection.close()
