"""Local times of a zone as instants, computed with zoneinfo; uses no code of the product."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


def readings(wall: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """The time read with the offset before and after a change; mostly there is none nearby.

    A time that comes twice is read as the earlier instant first, a time that is left out as the
    later one.
    """
    before, after = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return before, after


def instants(wall: datetime, zone: ZoneInfo, gap: str, overlap_hour: str) -> tuple[datetime, ...]:
    """All instants of a local time by the policies."""
    before, after = readings(wall, zone)
    if before < after:
        return {"first": (before,), "second": (after,), "both": (before, after)}[overlap_hour]
    if before > after:
        end_of_gap = first_change(zone, after)
        return {"shift": (before,), "next_valid": (end_of_gap,), "skip": ()}[gap]
    return (before,)


@lru_cache(maxsize=4096)
def first_change(zone: ZoneInfo, after: datetime) -> datetime:
    """Minute by minute, then back second by second: Monrovia's clock once jumped at :30."""
    old, at = _offset(zone, after), after
    while _offset(zone, at) == old:
        at += MINUTE
    while _offset(zone, at - SECOND) != old:
        at -= SECOND
    return at


def _offset(zone: ZoneInfo, at: datetime) -> timedelta | None:
    return at.astimezone(zone).utcoffset()


def days(first: date, last: date) -> Iterator[date]:
    while first <= last:
        yield first
        first += DAY


def changes(zone: ZoneInfo, start: datetime, until: datetime) -> list[datetime]:
    """The instants at which the zone changes its clocks, never twice in a day."""
    start = start.replace(minute=0, second=0, microsecond=0)
    mornings = [start + DAY * number for number in range((until - start).days + 1)]
    changed = [at for at in mornings if _offset(zone, at) != _offset(zone, at + DAY)]
    return [first_change(zone, at) for at in changed]


@lru_cache(maxsize=256)
def hours_of_change(zone: ZoneInfo, start: datetime) -> tuple[int, ...]:
    """The local hours that the clock changes of the next year skip or repeat."""
    found = set()
    for change in changes(zone, start, start + 365 * DAY):
        before = (change - SECOND).astimezone(zone).replace(tzinfo=None) + SECOND
        after = change.astimezone(zone).replace(tzinfo=None)
        found.add(min(before, after).hour)
    return tuple(sorted(found))
