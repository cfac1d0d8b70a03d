"""Fires of schedules in the old system, for the preview."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from agents_app.formats.old_cron import OldCron
from agents_app.triggers import Gap, OverlapHour, next_fire, parse_when, zone


@dataclass(frozen=True, slots=True)
class CronFires:
    """The fires of a cron expression in a zone."""

    cron: OldCron
    zone: str

    def __call__(self, after: datetime) -> Iterator[datetime]:
        return self.cron.fires(after, ZoneInfo(self.zone))


@dataclass(frozen=True, slots=True)
class IntervalFires:
    """The fires of an interval from the next due time on, or without it from now."""

    every: timedelta
    first: datetime | None = None

    def __call__(self, after: datetime) -> Iterator[datetime]:
        fire = self.first or after + self.every
        if fire <= after:
            fire += ((after - fire) // self.every + 1) * self.every
        while True:
            yield fire
            fire += self.every


@dataclass(frozen=True, slots=True)
class SingleFire:
    at: datetime

    def __call__(self, after: datetime) -> Iterator[datetime]:
        return iter([self.at] if self.at > after else [])


@dataclass(frozen=True, slots=True)
class TriggerFires:
    """The fires of a schedule that Drover reads as the old system does."""

    expression: str
    zone: str
    gap: Gap
    overlap_hour: OverlapHour

    def __call__(self, after: datetime) -> Iterator[datetime]:
        when = parse_when(self.expression, after, zone(self.zone), allow_past=True)
        fire = next_fire(when.trigger, after, when.zone, self.gap, self.overlap_hour)
        while fire is not None:
            yield fire
            fire = next_fire(when.trigger, fire, when.zone, self.gap, self.overlap_hour)
