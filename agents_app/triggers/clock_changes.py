"""The clock changes of a time zone, and its offset at an instant."""

from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import NamedTuple
from zoneinfo import ZoneInfo

_DAY = 86400
# A zone that changes its clocks regularly does so within this time.
_YEAR = 366 * _DAY
# The period that is searched at once and cached.
_PAGE = 16 * _DAY
# The first and the last day of datetime are left out: in another zone they would be out of range.
_FIRST_KNOWN = int(datetime(1, 1, 2, tzinfo=UTC).timestamp())
_LAST_KNOWN = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) - 1


class Change(NamedTuple):
    """The instant a zone's offset changes, with the offsets on both sides in seconds."""

    at: int
    before: int
    after: int


def changes_between(zone: ZoneInfo, start: int, end: int) -> tuple[Change, ...]:
    """Changes with start < at <= end."""
    pages = range(start // _PAGE, end // _PAGE + 1)
    changes = chain.from_iterable(_changes_on_page(zone, page) for page in pages)
    return tuple(change for change in changes if start < change.at <= end)


def next_clock_change(zone: ZoneInfo, after: datetime) -> Change | None:
    """The first change after `after`, or None if there is none within a year."""
    start = int(after.timestamp())
    return next(iter(changes_between(zone, start, start + _YEAR)), None)


@lru_cache(maxsize=65536)
def _changes_on_page(zone: ZoneInfo, page: int) -> tuple[Change, ...]:
    """Compare the offsets of each day and bisect days that differ; zoneinfo has no list."""
    start = page * _PAGE
    found = []
    before = offset_at(zone, start - 1)
    for day in range(start, start + _PAGE, _DAY):
        after = offset_at(zone, day + _DAY - 1)
        if after != before:
            found.append(Change(_bisect(zone, day - 1, day + _DAY - 1), before, after))
            before = after
    return tuple(found)


def _bisect(zone: ZoneInfo, low: int, high: int) -> int:
    offset = offset_at(zone, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset_at(zone, middle) == offset else (low, middle)
    return high


def offset_at(zone: ZoneInfo, instant: int) -> int:
    known = min(max(instant, _FIRST_KNOWN), _LAST_KNOWN)
    offset = datetime.fromtimestamp(known, zone).utcoffset()
    assert offset is not None  # a ZoneInfo always knows its offset at an instant
    return int(offset.total_seconds())
