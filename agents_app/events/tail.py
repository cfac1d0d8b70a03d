"""The journal as it grows: every entry once and in order, also when commits come out of order.

On PostgreSQL an entry has its number before it is committed, so a lower one may appear after a
higher. What is missing is waited for while a transaction goes on that was writing entries when it
was missed: whoever has taken a number holds a lock on the table until the commit is seen by all.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.db.models import Max, QuerySet

from agents_app.database import fetch_column, on_sqlite
from agents_app.models import RunEvent

log = structlog.get_logger("drover.journal")
MOST_AT_ONCE = 1000
# A transaction that hangs must not stop everybody for ever; ours take milliseconds.
LONGEST_DOUBT_SECONDS = 60.0
_WRITERS = """
SELECT virtualtransaction FROM pg_locks
WHERE relation = 'drover_run_event'::regclass AND mode = 'RowExclusiveLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
_COLUMNS = (
    *("pk", "tenant_id", "name", "at", "detail", "agent__name", "run_id", "run__schedule_id"),
    *("run__started_at", "run__finished_at", "run__result_summary", "run__error"),
)


@dataclass(frozen=True, slots=True)
class TailEntry:
    """An entry with what is known of its run, which may have gone on since."""

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
    tenant_id: int, after: int, up_to: int, most: int = MOST_AT_ONCE
) -> list[TailEntry]:
    """The first of a tenant's entries after one and up to another, the oldest first."""
    return _told(RunEvent.objects.filter(tenant=tenant_id, pk__gt=after, pk__lte=up_to), most)


def newest_entry() -> int:
    return RunEvent.objects.aggregate(newest=Max("pk"))["newest"] or 0


def _told(entries: "QuerySet[RunEvent]", most: int) -> list[TailEntry]:
    return [TailEntry(*row) for row in entries.order_by("pk").values_list(*_COLUMNS)[:most]]


@dataclass(frozen=True, slots=True)
class _Doubt:
    """Up to here something may be missing: these were writing when it was looked for."""

    up_to: int
    writers: frozenset[str]
    since: float


class Tail:
    """Reads on from where the journal ended when it was first asked; `cursor` is None until then.

    Everything up to `cursor` has been read, and nothing will ever appear there again.
    """

    def __init__(self) -> None:
        self.cursor: int | None = None
        self._doubt: _Doubt | None = None

    @property
    def in_doubt(self) -> bool:
        """It is worth asking again in a moment."""
        return self._doubt is not None

    def read(self, monotonic: float, most: int = MOST_AT_ONCE) -> list[TailEntry]:
        # Before the entries are read: whoever has ended by now is seen by what follows.
        settled = self._settled(monotonic)
        if self.cursor is None:
            self._begin(settled, monotonic)
            return []
        found = _told(RunEvent.objects.filter(pk__gt=self.cursor), most)
        ready = list(_without_gaps(found, self.cursor, settled))
        if len(ready) < len(found):
            self._wonder(found[-1].id, monotonic)
        if ready:
            self.cursor = ready[-1].id
        return ready

    def _begin(self, settled: int | None, monotonic: float) -> None:
        """Not before all have ended that may write something before the end."""
        if settled is None:
            settled = newest_entry()
            self._wonder(settled, monotonic)
        if self._doubt is None or not self._doubt.writers:
            self.cursor, self._doubt = settled, None

    def _wonder(self, up_to: int, monotonic: float) -> None:
        if self._doubt is None and not on_sqlite():
            self._doubt = _Doubt(up_to, _writers(), monotonic)

    def _settled(self, monotonic: float) -> int | None:
        """Up to here nothing can appear any more, as far as that had to be found out."""
        if self._doubt is None:
            return None
        left = self._doubt.writers and self._doubt.writers & _writers()
        if left and monotonic - self._doubt.since < LONGEST_DOUBT_SECONDS:
            self._doubt = _Doubt(self._doubt.up_to, left, self._doubt.since)
            return None
        if left:
            log.warning("journal.gap_given_up", up_to=self._doubt.up_to, writers=sorted(left))
        settled, self._doubt = self._doubt.up_to, None
        return settled


def _without_gaps(
    found: Iterable[TailEntry], after: int, settled: int | None
) -> Iterator[TailEntry]:
    for told in found:
        # SQLite has one writer at a time: what is missing there was never committed.
        if told.id - 1 > max(after, settled or 0) and not on_sqlite():
            return
        yield told
        after = told.id


def _writers() -> frozenset[str]:
    return frozenset(fetch_column(_WRITERS, []))
