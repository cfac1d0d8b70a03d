"""The lines of several runs, stored or as they are printed."""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import sleep

from django.db.models import Max, Q, QuerySet

from agents_app.models import Run
from agents_app.output import POLL_SECONDS, LogLine, LogReader, Progress, progress_of, stored_lines


@dataclass(frozen=True, slots=True)
class RunLogLine:
    run_id: int
    line: LogLine


class RunFollower:
    """Follows the unfinished runs of a query, and the runs that start meanwhile: those after the
    run `after`, or after the newest one."""

    def __init__(self, runs: "QuerySet[Run]", after: int | None = None) -> None:
        self._runs = runs.order_by("pk")
        newest = runs.aggregate(newest=Max("pk"))["newest"] if after is None else after
        self._newest = newest or 0
        self._readers: dict[int, LogReader] = {}
        self.agents: dict[int, str] = {}

    def follow(self) -> Iterator[RunLogLine | Progress]:
        """Yields new lines, and the progress of each run that has ended; never returns."""
        while True:
            yield from self._poll()
            sleep(POLL_SECONDS)

    def _poll(self) -> Iterator[RunLogLine | Progress]:
        self._add_new_runs()
        for run_id, progress in progress_of(list(self._readers)).items():
            reader = self._readers[run_id]
            if progress.seq > reader.seq:
                yield from (RunLogLine(run_id, line) for line in reader.read())
            if progress.ended:
                del self._readers[run_id]
                rest = reader.unfinished(ended=True)
                yield from (RunLogLine(run_id, line) for line in rest)
                yield progress

    def _add_new_runs(self) -> None:
        # By their number, too: a run may begin and end between two polls.
        new = self._runs.filter(Q(slot__isnull=False) | Q(pk__gt=self._newest))
        for run_id, agent in new.exclude(pk__in=self._readers).values_list("pk", "agent__name"):
            self._readers[run_id], self.agents[run_id] = LogReader(run_id), agent
            self._newest = max(self._newest, run_id)


def merged_lines(runs: Iterable[Run]) -> Iterator[RunLogLine]:
    """The stored lines of several runs, in the order of time."""
    logs = [_lines_of(run) for run in runs]
    return heapq.merge(*logs, key=lambda each: each.line.at)


def _lines_of(run: Run) -> Iterator[RunLogLine]:
    for line in stored_lines(run.pk, ended=run.slot is None):
        yield RunLogLine(run.pk, line)
