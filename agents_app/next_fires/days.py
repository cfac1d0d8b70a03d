"""The fires of a schedule day by day, for a calendar; pure, and bounded however often it fires."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from agents_app.next_fires.clock_change import MOMENT, Rule
from agents_app.triggers import IntervalTrigger

# What fires more often on a day is told by its first and last time.
NAMED_A_DAY = 4


@dataclass(frozen=True, slots=True)
class Day:
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


def days_from(first: date, count: int, place: ZoneInfo) -> tuple[Day, ...]:
    dates = [first + timedelta(days=number) for number in range(count + 1)]
    midnights = [datetime.combine(each, time(), place).astimezone(UTC) for each in dates]
    return tuple(map(Day, dates, midnights, midnights[1:]))


def fires_by_day(rule: Rule, armed: datetime, days: Sequence[Day]) -> list[Fired | None]:
    """`armed` is the next fire of all; None for a day on which nothing fires."""
    return [_on(rule, armed, day) for day in days]


def _on(rule: Rule, armed: datetime, day: Day) -> Fired | None:
    if armed >= day.end:
        return None
    last = day.end - MOMENT
    if armed >= day.start:
        found = [armed, *rule.between(armed, last, NAMED_A_DAY)]
    else:
        found = rule.between(_before(rule, armed, day), last, NAMED_A_DAY + 1)
    if len(found) <= NAMED_A_DAY:
        return Fired(tuple(found)) if found else None
    return Fired(band=(found[0], rule.last(found[0], last) or found[-1]))


def _before(rule: Rule, armed: datetime, day: Day) -> datetime:
    """An interval counts on from its last fire before the day; all else knows its own times."""
    midnight = day.start - MOMENT
    counts_on = isinstance(rule.trigger, IntervalTrigger)
    return (rule.last(armed, midnight) or armed) if counts_on else midnight
