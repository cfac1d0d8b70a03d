"""The system duty that adds new rows to the totals that /metrics shows.

It runs every few seconds, so that the hot path does not count, and before retention deletes rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count

from agents_app.database import fetch_one, in_transaction, to_database_time
from agents_app.events import Key, add_to_totals, observe
from agents_app.models import Delivery, Firing, MetricCursor, RunEvent

# Ids become visible out of order where several transactions write: new rows wait this long.
SETTLED = timedelta(seconds=10)
ROWS_IN_ONE_COMMIT = 5000
MAX_BATCHES = 20
# A firing may wait long for its outcome; while so many wait, no further firings are counted.
MAX_UNDECIDED = 10_000
KEYS_IN_ONE_QUERY = 500

RUN_SECONDS = (0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600)
LATE_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
ENDS = {
    f"run.{state}": state
    for state in ("succeeded", "failed", "timed_out", "stopped", "lost", "dead")
}


@dataclass(slots=True)
class Counted:
    """The counts that a batch adds to the totals, and the ids of firings without an outcome."""

    counts: dict[Key, float] = field(default_factory=dict)
    left: list[int] = field(default_factory=list)

    def count(self, *key: str, by: float = 1) -> None:
        self.counts[key] = self.counts.get(key, 0) + by

    def count_outcome(self, firing_id: int, outcome: str, reason: str) -> None:
        """A firing that polls its work source has no outcome yet."""
        if outcome in {Firing.Outcome.UNDECIDED, Firing.Outcome.POLLING}:
            self.left.append(firing_id)
        else:
            self.count("firings", outcome, reason)


def count_totals(now: datetime) -> None:
    """Count the new rows of each table; called by beat."""
    for table in TABLES:
        for _ in range(MAX_BATCHES):
            if not _count_batch(table, now):
                break
    _count_decided(now)


# --- cursors --------------------------------------------------------------------------------

_NEXT = """
SELECT max(id) FROM (SELECT id, {at} AS at FROM {table} WHERE id > %s ORDER BY id LIMIT %s) AS next
WHERE at <= %s"""


def _count_batch(table: str, now: datetime) -> bool:
    """Count the next rows of a table; False if there are none yet."""
    cursor = _cursor(table)
    if len(cursor.left) >= MAX_UNDECIDED:
        return False
    at, count = TABLES[table]
    sql = _NEXT.format(at=at, table=table)
    row = fetch_one(sql, [cursor.counted_id, ROWS_IN_ONE_COMMIT, to_database_time(now - SETTLED)])
    if row is None or row[0] is None:
        return False
    counted = count(cursor.counted_id, row[0])
    left = [*cursor.left, *counted.left]
    return _move(cursor, counted.counts, now, counted_id=row[0], left=left)


def _cursor(table: str) -> MetricCursor:
    known = MetricCursor.objects.filter(table=table).first()
    return known or in_transaction(lambda: MetricCursor.objects.get_or_create(table=table)[0])


def _move(cursor: MetricCursor, counts: Mapping[Key, float], now: datetime, **columns: Any) -> bool:
    """Move the cursor and add the counts in one transaction; False if another beat moved it."""
    same = MetricCursor.objects.filter(pk=cursor.pk, turn=cursor.turn)

    def change() -> bool:
        if not same.update(turn=cursor.turn + 1, counted_at=now, **columns):
            return False
        add_to_totals(counts)
        return True

    return in_transaction(change)


# --- counting -------------------------------------------------------------------------------


def _events(after: int, upto: int) -> Counted:
    counted = Counted()
    events = RunEvent.objects.filter(pk__gt=after, pk__lte=upto)
    for name, number in events.order_by().values_list("name").annotate(Count("pk")):
        counted.count("events", name, by=number)
    ends = events.filter(name__in=list(ENDS), run__started_at__isnull=False).order_by()
    for name, began, ended in ends.values_list("name", "run__started_at", "run__finished_at"):
        if began is not None and ended is not None:
            seconds = max(0.0, (ended - began).total_seconds())
            observe(counted.counts, ("run_duration_seconds", ENDS[name]), RUN_SECONDS, seconds)
    return counted


def _deliveries(after: int, upto: int) -> Counted:
    counted = Counted()
    rows = Delivery.objects.filter(pk__gt=after, pk__lte=upto).order_by()
    # Refused requests have a total of their own, which counts all of them.
    rows = rows.exclude(outcome=Delivery.Outcome.REFUSED)
    for provider, outcome, number in rows.values_list("provider", "outcome").annotate(Count("pk")):
        counted.count("deliveries", provider, outcome, by=number)
    return counted


def _firings(after: int, upto: int) -> Counted:
    """The lateness is counted immediately, the outcome when the firing has one."""
    counted = Counted()
    rows = Firing.objects.filter(pk__gt=after, pk__lte=upto)
    for key, outcome, reason, due_at, recorded_at in rows.values_list(
        "pk", "outcome", "reason", "due_at", "recorded_at"
    ):
        seconds = max(0.0, (recorded_at - due_at).total_seconds())
        observe(counted.counts, ("firing_lateness_seconds",), LATE_SECONDS, seconds)
        counted.count_outcome(key, outcome, reason)
    return counted


def _count_decided(now: datetime) -> None:
    """Count firings that had no outcome when the cursor passed them."""
    cursor = _cursor(FIRINGS)
    counted = Counted()
    for start in range(0, len(cursor.left), KEYS_IN_ONE_QUERY):
        _count_outcomes(cursor.left[start : start + KEYS_IN_ONE_QUERY], counted)
    if counted.left != cursor.left:
        _move(cursor, counted.counts, now, left=counted.left)


def _count_outcomes(keys: Sequence[int], counted: Counted) -> None:
    rows = Firing.objects.filter(pk__in=keys).order_by("pk")
    for key, outcome, reason in rows.values_list("pk", "outcome", "reason"):
        counted.count_outcome(key, outcome, reason)


FIRINGS = "drover_firing"
TABLES: Mapping[str, tuple[str, Callable[[int, int], Counted]]] = {
    "drover_run_event": ("at", _events),
    FIRINGS: ("recorded_at", _firings),
    "drover_delivery": ("received_at", _deliveries),
}
