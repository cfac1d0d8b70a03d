"""Reading the journal as it grows: each entry once and in order of its id.

Where commits come out of order, an entry with a lower id may appear after one with a higher id.
`Tail` waits at a gap until every transaction has ended that was writing entries when the gap was
found. A transaction that has taken an id holds a lock on the table until its commit is visible.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.db.models import Max, QuerySet

from agents_app.database import ENGINE
from agents_app.models import RunEvent

log = structlog.get_logger("drover.journal")
MAX_TAIL_ENTRIES = 1000
# One transaction that hangs must not stop all streams; Drover's transactions take milliseconds.
MAX_GAP_SECONDS = 60.0
_COLUMNS = (
    *("pk", "tenant_id", "name", "at", "detail", "agent__name", "run_id", "run__schedule_id"),
    *("run__started_at", "run__finished_at", "run__result_summary", "run__error"),
)


@dataclass(frozen=True, slots=True)
class TailEntry:
    """A journal entry with the present facts of its run, which may be newer than the entry."""

    id: int
    tenant_id: int
    name: str
    at: datetime
    detail: str
    agent: str | None
    run_id: int | None
    schedule_id: int | None
    started_at: datetime | None
    finished_at: datetime | None
    result_summary: str | None
    error: str | None


def entries_between(
    tenant_id: int, after: int, up_to: int, limit: int = MAX_TAIL_ENTRIES
) -> list[TailEntry]:
    """The first entries of a tenant with ids above `after` and up to `up_to`, oldest first."""
    return _read(RunEvent.objects.filter(tenant=tenant_id, pk__gt=after, pk__lte=up_to), limit)


def newest_entry_id() -> int:
    return RunEvent.objects.aggregate(newest=Max("pk"))["newest"] or 0


def _read(entries: "QuerySet[RunEvent]", limit: int) -> list[TailEntry]:
    return [TailEntry(*row) for row in entries.order_by("pk").values_list(*_COLUMNS)[:limit]]


@dataclass(frozen=True, slots=True)
class _Gap:
    """Ids up to `up_to` may be missing; `writers` were writing entries when that was found."""

    up_to: int
    writers: frozenset[str]
    since: float


class Tail:
    """Reads the entries that are written after its first `read`; `cursor` is None until then.

    All entries up to `cursor` have been returned, and no entry will appear there any more.
    """

    def __init__(self) -> None:
        self.cursor: int | None = None
        self._gap: _Gap | None = None

    @property
    def is_waiting(self) -> bool:
        """Entries are held back at a gap: the next `read` should follow soon."""
        return self._gap is not None

    def read(self, monotonic: float, limit: int = MAX_TAIL_ENTRIES) -> list[TailEntry]:
        # Before the entries are read, so that entries of transactions that have ended are seen.
        settled = self._close_gap(monotonic)
        if self.cursor is None:
            self._begin(settled, monotonic)
            return []
        found = _read(RunEvent.objects.filter(pk__gt=self.cursor), limit)
        ready = list(_until_gap(found, self.cursor, settled))
        if len(ready) < len(found):
            self._open_gap(found[-1].id, monotonic)
        if ready:
            self.cursor = ready[-1].id
        return ready

    def _begin(self, settled: int | None, monotonic: float) -> None:
        """Set the cursor once no open transaction can write an entry below it."""
        if settled is None:
            settled = newest_entry_id()
            self._open_gap(settled, monotonic)
        if self._gap is None or not self._gap.writers:
            self.cursor, self._gap = settled, None

    def _open_gap(self, up_to: int, monotonic: float) -> None:
        if self._gap is None:
            self._gap = _Gap(up_to, _writers(), monotonic)

    def _close_gap(self, monotonic: float) -> int | None:
        """The id up to which no entry can appear any more, if a gap has just been closed."""
        if self._gap is None:
            return None
        left = self._gap.writers and self._gap.writers & _writers()
        if left and monotonic - self._gap.since < MAX_GAP_SECONDS:
            self._gap = _Gap(self._gap.up_to, left, self._gap.since)
            return None
        if left:
            log.warning("journal.gap_given_up", up_to=self._gap.up_to, writers=sorted(left))
        settled, self._gap = self._gap.up_to, None
        return settled


def _until_gap(
    entries: Iterable[TailEntry], after: int, settled: int | None
) -> Iterator[TailEntry]:
    for entry in entries:
        # Where ids appear in order, a missing id was never committed, or its row was deleted.
        if entry.id - 1 > max(after, settled or 0) and not ENGINE.ids_appear_in_order:
            return
        yield entry
        after = entry.id


def _writers() -> frozenset[str]:
    return ENGINE.writing_transactions("drover_run_event")
