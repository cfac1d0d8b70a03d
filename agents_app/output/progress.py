"""How far runs are, and waiting for what they print next."""

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from time import monotonic, sleep
from typing import Any

from django.db.models import OuterRef, Subquery

from agents_app.models import Run, RunOutput, WorkItem
from agents_app.output.lines import LogLine
from agents_app.output.reader import LogReader, TextReader

POLL_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Progress:
    """The last row of a run's output, and how the run ended; without a state the run is gone.

    Both of one moment: the output of a run is stored before or with its end.
    """

    run_id: int
    seq: int = 0
    ended: bool = True
    state: str = ""
    exit_code: int | None = None
    error: str = ""
    finished_at: datetime | None = None


def progress_of(run_ids: Collection[int]) -> dict[int, Progress]:
    last = RunOutput.objects.filter(run=OuterRef("pk")).order_by("-seq").values("seq")[:1]
    rows: Iterable[Any] = (
        Run.objects.filter(pk__in=run_ids)
        .annotate(seq=Subquery(last))
        .values_list("pk", "seq", "slot", "state", "exit_code", "error", "finished_at")
    )
    found = {
        key: Progress(key, seq or 0, slot is None, *ending) for key, seq, slot, *ending in rows
    }
    return {run_id: found.get(run_id) or Progress(run_id) for run_id in run_ids}


def lines_until_end(run_id: int) -> Iterator[LogLine]:
    """The plain lines of a run as they end, until the run ends."""
    reader = LogReader(run_id)
    for _ in _polls_until_end(run_id):
        yield from reader.read()
    yield from reader.unfinished(ended=True)


class StillRunning(Exception):
    """The time to wait is over, and the run or the work item has not ended."""


def text_until_end(run_id: int, give_up_at: float = math.inf) -> Iterator[str]:
    """The text of a run as it is printed, until the run ends.

    Raises StillRunning at the time `give_up_at` of the monotonic clock."""
    reader = TextReader(run_id)
    for _ in _polls_until_end(run_id, give_up_at):
        yield from reader.read()
    yield from reader.finish()


def _polls_until_end(run_id: int, give_up_at: float = math.inf) -> Iterator[None]:
    """Yields when the output is to be read, the last time when the run has ended."""
    while True:
        # Before the output is read, which is stored before or with the end of the run.
        goes_on = Run.objects.filter(pk=run_id, slot__isnull=False).exists()
        yield
        if not goes_on:
            return
        _sleep_until(give_up_at)


def runs_of_work_item(work_item_id: int, give_up_at: float = math.inf) -> Iterator[int]:
    """Each run of a work item when it exists, retries too, until the work item has ended.

    Raises StillRunning at the time `give_up_at` of the monotonic clock."""
    last = 0
    while True:
        state = WorkItem.objects.values_list("state", flat=True).get(pk=work_item_id)
        run = Run.objects.filter(work_item=work_item_id, pk__gt=last).order_by("pk").first()
        if run is not None:
            last = run.pk
            yield run.pk
        elif state not in {WorkItem.State.QUEUED, WorkItem.State.ADMITTED}:
            return
        else:
            _sleep_until(give_up_at)


def _sleep_until(give_up_at: float) -> None:
    """Sleep until the next poll; StillRunning if it is later than `give_up_at`."""
    left = give_up_at - monotonic()
    if left <= 0:
        raise StillRunning
    sleep(min(POLL_SECONDS, left))
