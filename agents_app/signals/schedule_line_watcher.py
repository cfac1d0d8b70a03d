"""Obeys the `/schedule` lines of a run's output while they come, and answers them in its log.

The thread that supervises the program only finds the lines: the database may keep one waiting, and
a program whose output nobody reads is kept waiting, too.
"""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from typing import Protocol

import structlog
from django.db import connection

from agents_app.models import Agent, Run
from agents_app.output import STDOUT, LineSplitter
from agents_app.runners import OutputSink
from agents_app.signals.schedule_lines import block, run_schedule_line
from agents_app.triggers import ScheduleLineFinder

log = structlog.get_logger("drover.writs")
MOST_A_RUN = 20
# A run that has ended waits so long for the answers, and no longer.
LAST_ANSWERS_SECONDS = 10.0
# A line without one of these is neither a writ nor the edge of a fenced block.
_MARKS = (b"/schedule", b"```", b"~~~")
_clerks = ThreadPoolExecutor(2, thread_name_prefix="writs")


class RemarkSink(OutputSink, Protocol):
    def remark(self, text: str, at: float) -> None: ...


class ScheduleLineWatcher:
    """A sink that passes everything on, and looks at the lines of stdout; it never raises."""

    def __init__(self, sink: RemarkSink, agent_id: int, run_id: int) -> None:
        self._sink = sink
        self._agent_id, self._run_id = agent_id, run_id
        self._lines = LineSplitter(self._look)
        self._finder = ScheduleLineFinder()
        self._count = 0
        self._answers: deque[tuple[Future[str], float]] = deque()
        self._in_a_line = False
        self._last_at = 0.0

    def feed(self, stream: int, data: bytes, at: float) -> None:
        self._last_at = at
        self._in_a_line = not data.endswith(b"\n")
        self._sink.feed(stream, data, at)
        if stream == STDOUT:
            self._lines.feed(_edges_of_plain(data), at)

    def flush(self) -> None:
        self._give_answers()
        self._sink.flush()

    def finish(self) -> None:
        """The run has ended and is still ours: what it asked for last is answered, too."""
        self._lines.finish(self._last_at)
        if self._answers:
            wait([future for future, _ in self._answers], LAST_ANSWERS_SECONDS)
            self._give_answers()

    def _look(self, text: bytes, at: float) -> None:
        writ = self._finder.writ_in(text.decode(errors="replace"))
        if writ is None:
            return
        self._count += 1
        if self._count <= MOST_A_RUN:
            future = _clerks.submit(_obey, self._agent_id, self._run_id, writ, at)
            self._answers.append((future, at))
        elif self._count == MOST_A_RUN + 1:
            self._say(block(writ, f"ERR: a run may write {MOST_A_RUN} of them"), at)

    def _give_answers(self) -> None:
        while self._answers and self._answers[0][0].done():
            future, at = self._answers.popleft()
            self._say(future.result(), at)

    def _say(self, text: str, at: float) -> None:
        self._sink.remark(f"\n{text}" if self._in_a_line else text, at)
        self._in_a_line = False


def _edges_of_plain(data: bytes) -> bytes:
    """Of data without a mark only the first line, which ends one that had begun, and the last,
    which may go on: cutting up a fast program's output would cost more than reading it."""
    first = data.find(b"\n") + 1
    if first == 0 or any(mark in data for mark in _MARKS):
        return data
    return data[:first] + data[data.rindex(b"\n") + 1 :]


def _obey(agent_id: int, run_id: int, writ: str, at: float) -> str:
    try:
        if not Run.objects.filter(pk=run_id, state=Run.State.RUNNING).exists():
            return block(writ, "ERR: this run has ended")
        agent = Agent.objects.get(pk=agent_id)
        return run_schedule_line(agent, writ, datetime.fromtimestamp(at, UTC), f"run {run_id}").text
    except Exception as error:
        log.exception("writ.not_obeyed", run_id=run_id)
        return block(writ, f"ERR: it could not be done ({type(error).__name__}); ask again")
    finally:
        connection.close()
