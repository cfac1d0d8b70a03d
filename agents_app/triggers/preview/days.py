"""The fires of a schedule by day, for a calendar; pure, with a bounded cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from agents_app.triggers import IntervalTrigger
from agents_app.triggers.preview.clock_change import MOMENT, ClockRule

# More fires of a day are shown by the first and the last time.
MAX_NAMED_PER_DAY = 4


@dataclass(frozen=True, slots=True)
class DayPeriod:
    """A day of a time zone, from midnight to midnight: 23 to 25 hours."""

    date: date
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class FiresOfDay:
    """The fires of a schedule on one day: a few times, or the first and last of many."""

    fires: tuple[datetime, ...] = ()
    band: tuple[datetime, datetime] | None = None

    @property
    def first(self) -> datetime:
        return self.band[0] if self.band else self.fires[0]


def days_from(first: date, count: int, place: ZoneInfo) -> tuple[DayPeriod, ...]:
    dates = [first + timedelta(days=number) for number in range(count + 1)]
    midnights = [datetime.combine(each, time(), place).astimezone(UTC) for each in dates]
    return tuple(map(DayPeriod, dates, midnights, midnights[1:]))


def fires_by_day(
    rule: ClockRule, armed: datetime, days: Sequence[DayPeriod]
) -> list[FiresOfDay | None]:
    """The fires of each day, None for a day without; `armed` is the next fire."""
    return [_on(rule, armed, day) for day in days]


def _on(rule: ClockRule, armed: datetime, day: DayPeriod) -> FiresOfDay | None:
    if armed >= day.end:
        return None
    if armed >= day.start:
        return _found(rule, [armed, *rule.between(armed, day.end - MOMENT, MAX_NAMED_PER_DAY)], day)
    if isinstance(rule.trigger, IntervalTrigger):
        # An interval counts from its last fire before the day.
        return _after(rule, rule.last(armed, day.start - MOMENT) or armed, day)
    return _by_the_clock(rule, day)


@lru_cache(maxsize=8192)
def _by_the_clock(rule: ClockRule, day: DayPeriod) -> FiresOfDay | None:
    """Cached, because future days are requested repeatedly."""
    return _after(rule, day.start - MOMENT, day)


def _after(rule: ClockRule, before: datetime, day: DayPeriod) -> FiresOfDay | None:
    return _found(rule, rule.between(before, day.end - MOMENT, MAX_NAMED_PER_DAY + 1), day)


def _found(rule: ClockRule, fires: list[datetime], day: DayPeriod) -> FiresOfDay | None:
    if len(fires) <= MAX_NAMED_PER_DAY:
        return FiresOfDay(tuple(fires)) if fires else None
    return FiresOfDay(band=(fires[0], rule.last(fires[0], day.end - MOMENT) or fires[-1]))
