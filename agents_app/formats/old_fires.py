"""Fires of schedules in the old system, for the preview."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from agents_app.formats.old_cron import OldCron


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
