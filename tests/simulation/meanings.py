"""The meaning of a schedule's text as instants; uses no code of the product."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

from tests.simulation.cron_text import CronText
from tests.simulation.wall_clock import DAY, instants


class Meaning(Protocol):
    def instants(self, after: datetime, until: datetime) -> list[datetime]:
        """The instants later than `after`, the creation of the schedule."""


@dataclass(frozen=True)
class Place:
    """The time zone of a schedule and its policies for clock changes."""

    zone: ZoneInfo
    gap: str
    overlap_hour: str

    def today(self, now: datetime) -> date:
        return now.astimezone(self.zone).date()

    def instants(self, wall: datetime) -> tuple[datetime, ...]:
        return instants(wall, self.zone, self.gap, self.overlap_hour)


@dataclass(frozen=True)
class LocalTimes:
    """A cron line, or a phrase with the same meaning."""

    line: CronText
    place: Place

    def instants(self, after: datetime, until: datetime) -> list[datetime]:
        place = self.place
        if self.line.follows_real_clock:
            place = Place(place.zone, "skip", "both")
        # A skipped time may be shifted to the next day.
        walls = self.line.walls(place.today(after) - DAY, place.today(until) + DAY)
        found = {at for wall in walls for at in place.instants(wall)}
        return sorted(at for at in found if after < at <= until)


@dataclass(frozen=True)
class ElapsedInterval:
    """`every 90 minutes`: elapsed time, independent of clock changes."""

    every: timedelta

    def instants(self, after: datetime, until: datetime) -> list[datetime]:
        count = (until - after) // self.every
        return [after + self.every * number for number in range(1, count + 1)]


@dataclass(frozen=True)
class Once:
    at: datetime

    def instants(self, after: datetime, until: datetime) -> list[datetime]:
        return [self.at] if after < self.at <= until else []


@dataclass(frozen=True)
class AfterEachRun:
    """`15m`: immediately, then so long after the end of each run; all runs take the same time."""

    every: timedelta
    takes: timedelta

    def claims(self, after: datetime, moments: list[datetime]) -> list[tuple[datetime, datetime]]:
        """The claims of the schedule, as (instant, time of the claim)."""
        found: list[tuple[datetime, datetime]] = []
        armed, ends_at = after, None
        for moment in moments:
            if ends_at is not None and ends_at <= moment:
                armed, ends_at = ends_at + self.every, None
            if armed > moment:
                continue
            if ends_at is None:
                found.append((armed, moment))
                ends_at = moment + self.takes
            armed = moment + self.every
        return found
