"""Random texts of one-shots, each with its instant; uses no code of the product."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from tests.simulation.meanings import Place
from tests.simulation.wall_clock import DAY, changes, hours_of_change

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
HOURS = (0, 0, 1, 1, 2, 2, 3, 23, *range(4, 23, 3))


@dataclass(frozen=True)
class OneShot:
    """The first instant counts; there may be no instant."""

    text: str
    instants: tuple[datetime, ...]


Form = Callable[[random.Random, Place, datetime], OneShot]


def hour_and_minute(chance: random.Random, place: Place, start: datetime) -> tuple[int, int]:
    """A random time of day, mostly in an hour of a clock change."""
    minutes = (0, 0, 15, 30, 30, 45, 59, chance.randrange(60))
    changed = hours_of_change(place.zone, start)
    hours = changed if changed and chance.random() < 0.7 else HOURS
    return chance.choice(hours), chance.choice(minutes)


def _elapsed(chance: random.Random, _: Place, start: datetime) -> OneShot:
    number, unit = chance.choice(((30, "minutes"), (7, "hours"), (100, "days")))
    return OneShot(f"in {number} {unit}", (start + timedelta(**{unit: number}),))


def _instant(chance: random.Random, _: Place, start: datetime) -> OneShot:
    at = start + timedelta(seconds=chance.randrange(1, 300 * 86_400))
    return OneShot(at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), (at,))


def _next_time(chance: random.Random, place: Place, start: datetime) -> OneShot:
    """Today, or on the first day on which the time exists."""
    hour, minute = hour_and_minute(chance, place, start)
    wall = datetime.combine(place.today(start), time(hour, minute))
    found = [at for day in range(3) for at in place.instants(wall + day * DAY) if at > start]
    return OneShot(f"at {hour:02}:{minute:02}", tuple(sorted(found)))


def _tomorrow(chance: random.Random, place: Place, start: datetime) -> OneShot:
    return _on(chance, place, start, "tomorrow", place.today(start) + DAY)


def _next_weekday(chance: random.Random, place: Place, start: datetime) -> OneShot:
    """The next such weekday after today."""
    today, weekday = place.today(start), chance.randrange(7)
    day = today + DAY * ((weekday - today.weekday() - 1) % 7 + 1)
    return _on(chance, place, start, f"next {WEEKDAYS[weekday]}", day)


def _when_clocks_change(chance: random.Random, place: Place, start: datetime) -> OneShot:
    days = [place.today(at) for at in changes(place.zone, start + DAY, start + 360 * DAY)]
    day = chance.choice(days or [place.today(start) + 99 * DAY])
    return _on(chance, place, start, f"on {day}", day)


def _on(chance: random.Random, place: Place, start: datetime, words: str, day: date) -> OneShot:
    hour, minute = hour_and_minute(chance, place, start)
    wall = datetime.combine(day, time(hour, minute))
    return OneShot(f"{words} at {hour:02}:{minute:02}", place.instants(wall))


FORMS: tuple[Form, ...] = (
    *(_elapsed, _instant, _next_time, _tomorrow, _next_weekday),
    *(_when_clocks_change, _when_clocks_change, _when_clocks_change),
)
