"""Converts wall-clock matches to instants and applies the policies for clock changes.

Instants are UTC epoch seconds; walls are local clock readings in seconds (instant + offset).
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Literal, NamedTuple, get_args
from zoneinfo import ZoneInfo

from agents_app.triggers.clock_changes import Change, changes_between, offset_at

Gap = Literal["shift", "next_valid", "skip"]
OverlapHour = Literal["first", "second", "both"]
NextWall = Callable[[int], int | None]

GAPS: tuple[Gap, ...] = get_args(Gap)
OVERLAP_HOURS: tuple[OverlapHour, ...] = get_args(OverlapHour)

_DAY = 86400
# No change moves a clock by more than a day, so it has no effect two days away.
_MARGIN = 2 * _DAY
# 29 February on a fifth Monday can be 40 years away. A time that the skip policy skips in a
# hundred years (02:30 on the Sunday of the change) never fires.
_MAX_SEARCH_SECONDS = 100 * 366 * _DAY
_END_OF_TIME = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())


class OffsetSpan(NamedTuple):
    """A period of constant offset and the changes at its ends; None is far away."""

    opened_by: Change | None
    closed_by: Change | None
    offset: int


def next_instant(
    next_wall: NextWall, after: int, zone: ZoneInfo, gap: Gap, overlap_hour: OverlapHour
) -> int | None:
    """The first instant strictly after `after` that corresponds to a match of the wall clock."""
    give_up = min(after + _MAX_SEARCH_SECONDS, _END_OF_TIME)
    while after < give_up:
        offset = offset_at(zone, after)
        wall = next_wall(after + offset)
        # No later match on the wall clock is not the end: the clock may still be set back.
        here = after if wall is None else wall - offset
        horizon = here + _MARGIN
        changes = changes_between(zone, after - _MARGIN, horizon + _MARGIN)
        if not changes:
            return here if wall is not None and here <= _END_OF_TIME else None
        found = _first_in_spans(next_wall, after, _spans(changes, after), gap, overlap_hour)
        # After the horizon, a change may have an effect that has not been looked up yet.
        if found is not None and found < horizon:
            return found
        if wall is None:
            return None
        after = horizon - 1
    return None


def _first_in_spans(
    next_wall: NextWall,
    after: int,
    spans: Iterator[OffsetSpan],
    gap: Gap,
    overlap_hour: OverlapHour,
) -> int | None:
    for span in spans:
        # A fire that is shifted out of the gap may be later than a regular one of the same span.
        regular = _regular(next_wall, after, span, overlap_hour)
        shifted = _from_gap(next_wall, after, span, gap)
        found = [instant for instant in (regular, shifted) if instant is not None]
        if found:
            return min(found)
    return None


def _regular(
    next_wall: NextWall, after: int, span: OffsetSpan, overlap_hour: OverlapHour
) -> int | None:
    opened_by, closed_by, offset = span
    start, end = after, _END_OF_TIME
    if opened_by:
        repeated = max(opened_by.before - offset, 0) if overlap_hour == "first" else 0
        start = max(after, opened_by.at + repeated - 1)
    if closed_by:
        to_repeat = max(offset - closed_by.after, 0) if overlap_hour == "second" else 0
        end = closed_by.at - to_repeat
    wall = next_wall(start + offset)
    return wall - offset if wall is not None and wall - offset < end else None


def _from_gap(next_wall: NextWall, after: int, span: OffsetSpan, gap: Gap) -> int | None:
    change = span.opened_by
    if gap == "skip" or change is None or change.before > change.after:
        return None
    # With the old offset, a wall inside the gap is shifted by the length of the gap.
    wall = next_wall(max(after, change.at - 1) + change.before)
    if wall is None or wall >= change.at + change.after:
        return None
    if gap == "next_valid":
        return change.at if change.at > after else None
    return wall - change.before


def _spans(changes: tuple[Change, ...], after: int) -> Iterator[OffsetSpan]:
    """The spans that contain an instant after `after`; the last one has no end."""
    opened_by = None
    for change in changes:
        if change.at > after:
            yield OffsetSpan(opened_by, change, change.before)
        opened_by = change
    yield OffsetSpan(opened_by, None, changes[-1].after)
