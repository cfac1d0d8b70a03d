"""One-shots that only a clock and a zone can turn into an instant; no text is read here."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from agents_app.triggers.cron import parse_cron
from agents_app.triggers.dst import Gap, OverlapHour, next_instant
from agents_app.triggers.fires import next_fire

_OUT_OF_RANGE = "lies beyond the year 9999; choose an earlier time"
IN_THE_PAST = "is in the past; write a time to come"
# Farther than any zone is from UTC and any clock change reaches.
_MARGIN_SECONDS = 3 * 86400
_EARLIEST = date(1970, 1, 2)


class NoInstantError(Exception):
    """Why there is no such instant."""


@dataclass(frozen=True, slots=True)
class Clock:
    now: datetime
    zone: ZoneInfo
    gap: Gap
    overlap_hour: OverlapHour


@dataclass(frozen=True, slots=True)
class Elapsed:
    """`in 30 minutes`: so much later, whatever the clocks on the wall do meanwhile."""

    span: timedelta

    def instant(self, clock: Clock) -> datetime:
        try:
            return clock.now.astimezone(UTC) + self.span
        except OverflowError:
            raise NoInstantError(_OUT_OF_RANGE) from None


@dataclass(frozen=True, slots=True)
class NextTime:
    """`at 17:00`: today, or tomorrow if that is over."""

    at: time

    def instant(self, clock: Clock) -> datetime:
        daily = parse_cron(f"{self.at.minute} {self.at.hour} * * *")
        fire = next_fire(daily, clock.now, clock.zone, clock.gap, clock.overlap_hour)
        if fire is None:
            raise NoInstantError(_OUT_OF_RANGE)
        return fire


@dataclass(frozen=True, slots=True)
class OnDay:
    """`tomorrow at 09:00`: `pick` finds the date from today's, and it may be one long past."""

    pick: Callable[[date], date]
    at: time

    def instant(self, clock: Clock) -> datetime:
        try:
            day = self.pick(clock.now.astimezone(clock.zone).date())
        except OverflowError:
            raise NoInstantError(_OUT_OF_RANGE) from None
        if day < _EARLIEST:
            raise NoInstantError(IN_THE_PAST)
        return _on_the_wall(datetime.combine(day, self.at), clock)


Moment = Elapsed | NextTime | OnDay


def _on_the_wall(wall: datetime, clock: Clock) -> datetime:
    """The instant still to come at which the clocks show it, else the one that is over."""
    seconds = int(wall.replace(microsecond=0, tzinfo=UTC).timestamp())

    def only_this(after: int) -> int | None:
        return seconds if after < seconds else None

    def first_after(after: int) -> int | None:
        return next_instant(only_this, after, clock.zone, clock.gap, clock.overlap_hour)

    # Asked from shortly before: the machinery looks at every clock change on its way.
    start = seconds - _MARGIN_SECONDS
    found = first_after(max(start, math.floor(clock.now.timestamp()))) or first_after(start)
    if found is None:
        skipped = "falls into an hour that the clocks skip; choose another time"
        raise NoInstantError(_OUT_OF_RANGE if wall.year == 9999 else skipped)
    return datetime.fromtimestamp(found, UTC) + timedelta(microseconds=wall.microsecond)
