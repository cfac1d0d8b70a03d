"""When a zone's clocks change, and its offset at an instant; fires are dst.py's business."""

from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import NamedTuple
from zoneinfo import ZoneInfo

_DAY = 86400


class Change(NamedTuple):
    """The instant a zone's offset changes, with the offsets on both sides in seconds."""

    at: int
    before: int
    after: int


def changes_between(zone: ZoneInfo, start: int, end: int) -> tuple[Change, ...]:
    """Changes with start < at <= end."""
    years = range(_year(start), _year(end) + 1)
    changes = chain.from_iterable(_changes_in_year(zone, year) for year in years)
    return tuple(change for change in changes if start < change.at <= end)


@lru_cache(maxsize=65536)
def _changes_in_year(zone: ZoneInfo, year: int) -> tuple[Change, ...]:
    """Looks at every day and halves those that differ, as zoneinfo keeps its list to itself."""
    start = int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
    end = int(datetime(year + 1, 1, 1, tzinfo=UTC).timestamp())
    found = []
    before = offset_at(zone, start - 1)
    for day in range(start, end, _DAY):
        after = offset_at(zone, day + _DAY - 1)
        if after != before:
            found.append(Change(_halve(zone, day - 1, day + _DAY - 1), before, after))
            before = after
    return tuple(found)


def _halve(zone: ZoneInfo, low: int, high: int) -> int:
    offset = offset_at(zone, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset_at(zone, middle) == offset else (low, middle)
    return high


def offset_at(zone: ZoneInfo, instant: int) -> int:
    offset = datetime.fromtimestamp(instant, zone).utcoffset()
    assert offset is not None  # a ZoneInfo always knows its offset at an instant
    return int(offset.total_seconds())


def _year(instant: int) -> int:
    return datetime.fromtimestamp(instant, UTC).year
