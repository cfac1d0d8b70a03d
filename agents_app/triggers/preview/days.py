"""The fires of a schedule day by day, for a calendar; pure, and bounded however often it fires."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from agents_app.triggers import IntervalTrigger
from agents_app.triggers.preview.clock_change import MOMENT, ClockRule

# What fires more often on a day is told by its first and last time.
NAMED_A_DAY = 4


@dataclass(frozen=True, slots=True)
class DayFires:
    """From one midnight to the next, on the clocks of a zone: 23 to 25 hours."""

    date: date
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Fired:
    """What a schedule does on one day: a few fires, or a band of many."""

    fires: tuple[datetime, ...] = ()
    band: tuple[datetime, datetime] | None = None

    @property
    def first(self) -> datetime:
        return self.band[0] if self.band else self.fires[0]


def days_from(first: date, count: int, place: ZoneInfo) -> tuple[DayFires, ...]:
    dates = [first + timedelta(days=number) for number in range(count + 1)]
    midnights = [datetime.combine(each, time(), place).astimezone(UTC) for each in dates]
    return tuple(map(DayFires, dates, midnights, midnights[1:]))


def fires_by_day(rule: ClockRule, armed: datetime, days: Sequence[DayFires]) -> list[Fired | None]:
    """`armed` is the next fire of all; None for a day on which nothing fires."""
    return [_on(rule, armed, day) for day in days]


def _on(rule: ClockRule, armed: datetime, day: DayFires) -> Fired | None:
    if armed >= day.end:
        return None
    if armed >= day.start:
        return _found(rule, [armed, *rule.between(armed, day.end - MOMENT, NAMED_A_DAY)], day)
    if isinstance(rule.trigger, IntervalTrigger):
        # It counts on from its last fire before the day.
        return _after(rule, rule.last(armed, day.start - MOMENT) or armed, day)
    return _by_the_clock(rule, day)


@lru_cache(maxsize=8192)
def _by_the_clock(rule: ClockRule, day: DayFires) -> Fired | None:
    """Remembered, because a day that is to come is looked at again and again."""
    return _after(rule, day.start - MOMENT, day)


def _after(rule: ClockRule, before: datetime, day: DayFires) -> Fired | None:
    return _found(rule, rule.between(before, day.end - MOMENT, NAMED_A_DAY + 1), day)


def _found(rule: ClockRule, fires: list[datetime], day: DayFires) -> Fired | None:
    if len(fires) <= NAMED_A_DAY:
        return Fired(tuple(fires)) if fires else None
    return Fired(band=(fires[0], rule.last(fires[0], day.end - MOMENT) or fires[-1]))
