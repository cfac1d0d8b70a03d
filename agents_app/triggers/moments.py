"""One-time phrases, which need the current time and a zone to become an instant."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from agents_app.triggers.cron import parse_cron
from agents_app.triggers.dst import Gap, OverlapHour, next_instant
from agents_app.triggers.fires import next_fire

_OUT_OF_RANGE = "is after the year 9999; choose an earlier time"
IN_THE_PAST = "is in the past; give a time in the future"
# More than the largest offset from UTC and the largest clock change.
_MARGIN_SECONDS = 3 * 86400
_EARLIEST = date(1970, 1, 2)


class NoInstantError(Exception):
    """The reason why a phrase has no instant."""


@dataclass(frozen=True, slots=True)
class Clock:
    now: datetime
    zone: ZoneInfo
    gap: Gap
    overlap_hour: OverlapHour


@dataclass(frozen=True, slots=True)
class Elapsed:
    """`in 30 minutes`: elapsed time, independent of clock changes."""

    span: timedelta

    def instant(self, clock: Clock) -> datetime:
        try:
            return clock.now.astimezone(UTC) + self.span
        except OverflowError:
            raise NoInstantError(_OUT_OF_RANGE) from None


@dataclass(frozen=True, slots=True)
class NextTime:
    """`at 17:00`: today, or tomorrow if that time has passed."""

    at: time

    def instant(self, clock: Clock) -> datetime:
        daily = parse_cron(f"{self.at.minute} {self.at.hour} * * *")
        fire = next_fire(daily, clock.now, clock.zone, clock.gap, clock.overlap_hour)
        if fire is None:
            raise NoInstantError(_OUT_OF_RANGE)
        return fire


@dataclass(frozen=True, slots=True)
class OnDay:
    """`tomorrow at 09:00`: `pick` computes the date from today's; it may be in the past."""

    pick: Callable[[date], date]
    at: time

    def instant(self, clock: Clock) -> datetime:
        try:
            day = self.pick(clock.now.astimezone(clock.zone).date())
        except OverflowError:
            raise NoInstantError(_OUT_OF_RANGE) from None
        if day < _EARLIEST:
            raise NoInstantError(IN_THE_PAST)
        return _instant_of_wall_time(datetime.combine(day, self.at), clock)


Moment = Elapsed | NextTime | OnDay


def _instant_of_wall_time(wall: datetime, clock: Clock) -> datetime:
    """The future instant at which the clocks show this time, else the past one."""
    seconds = int(wall.replace(microsecond=0, tzinfo=UTC).timestamp())

    def only_this(after: int) -> int | None:
        return seconds if after < seconds else None

    def first_after(after: int) -> int | None:
        return next_instant(only_this, after, clock.zone, clock.gap, clock.overlap_hour)

    # Searched from shortly before: next_instant visits every clock change on the way.
    start = seconds - _MARGIN_SECONDS
    found = first_after(max(start, math.floor(clock.now.timestamp()))) or first_after(start)
    if found is None:
        skipped = "is skipped because daylight saving starts; choose another time"
        raise NoInstantError(_OUT_OF_RANGE if wall.year == 9999 else skipped)
    return datetime.fromtimestamp(found, UTC) + timedelta(microseconds=wall.microsecond)
