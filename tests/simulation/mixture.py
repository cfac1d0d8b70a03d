"""Random schedules of every kind from a seed, each with the meaning of its text."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, cycle, islice, repeat
from typing import Any
from zoneinfo import ZoneInfo

from tests.simulation import forms, one_shots
from tests.simulation.cron_text import CronText
from tests.simulation.meanings import (
    AfterEachRun,
    ElapsedInterval,
    LocalTimes,
    Meaning,
    Once,
    Place,
)

LONG_SECONDS = 2 * 86_400.0


@dataclass(frozen=True)
class Case:
    text: str
    timezone: str
    place: Place
    meaning: Meaning | AfterEachRun
    anchor: str = ""
    catch_up: str = "all"
    window_seconds: float = LONG_SECONDS


def mixture(
    chance: random.Random, zones: Sequence[ZoneInfo], start: datetime, count: int
) -> list[Case]:
    """Kinds and their forms alternate; everything else is random."""
    turns = [repeat((draw, cycle(shapes)), times) for draw, shapes, times in KINDS]
    kinds = list(chain.from_iterable(turns))
    chance.shuffle(kinds)
    return [
        _policy(chance, draw(chance, _place(chance, zones), start, next(shapes)))
        for draw, shapes in islice(cycle(kinds), count)
    ]


def _place(chance: random.Random, zones: Sequence[ZoneInfo]) -> Place:
    gap = chance.choice(("shift", "next_valid", "skip"))
    return Place(chance.choice(zones), gap, chance.choice(("first", "second", "both")))


def _policy(chance: random.Random, case: Case) -> Case:
    """Most schedules catch up all instants, so that every instant fires."""
    drawn = chance.random()
    if drawn < 0.75 or isinstance(case.meaning, AfterEachRun):
        return case
    catch_up = "last" if drawn < 0.88 else "skip" if drawn < 0.95 else "all"
    window = chance.choice((120.0, 1800.0, 3600.0, 6 * 3600.0))
    return replace(case, catch_up=catch_up, window_seconds=window)


# --- the kinds ------------------------------------------------------------------------------


def _cron(chance: random.Random, place: Place, start: datetime, form: str) -> Case:
    text = form.format(**_time_of_day(chance, place, start))
    return Case(text, place.zone.key, place, LocalTimes(CronText(text), place))


def _phrase(chance: random.Random, place: Place, start: datetime, form: tuple[str, str]) -> Case:
    words = _time_of_day(chance, place, start)
    phrase, line = (part.format(**words) for part in form)
    case = Case(phrase, place.zone.key, place, LocalTimes(CronText(line), place))
    if chance.random() < 0.2:  # a zone in the text has priority
        return replace(case, text=f"{phrase} {place.zone.key}", timezone="UTC")
    return case


def _elapsed(chance: random.Random, place: Place, _: datetime, span: str) -> Case:
    meaning = ElapsedInterval(_timedelta(span))
    case = Case(f"every {span}", place.zone.key, place, meaning)
    if chance.random() < 0.3:
        seconds = meaning.every.total_seconds()
        return replace(case, text=f"{seconds:.0f}s", anchor="start")
    return case


def _after_each_run(
    chance: random.Random, place: Place, _: datetime, form: tuple[str, float]
) -> Case:
    span, takes = form
    every = _timedelta(span)
    meaning = AfterEachRun(every, every * takes)
    if chance.random() < 0.3:
        return Case(f"every {span}", place.zone.key, place, meaning, anchor="completion")
    return Case(f"{every.total_seconds() / 3600:.0f}h", place.zone.key, place, meaning)


def _once(chance: random.Random, place: Place, start: datetime, form: one_shots.Form) -> Case:
    """A skipped time is refused with the policy `skip`: choose another one."""
    while not (drawn := form(chance, place, start)).instants:
        pass
    return Case(drawn.text, place.zone.key, place, Once(drawn.instants[0]))


def _timedelta(span: str) -> timedelta:
    number, unit = span.split()
    return timedelta(**{unit: int(number)})


def _time_of_day(chance: random.Random, place: Place, start: datetime) -> dict[str, int | str]:
    h, m = one_shots.hour_and_minute(chance, place, start)
    halves = {"h12": h % 12 or 12, "half": "pm" if h >= 12 else "am"}
    return {"h": h, "m": m, "later": min(23, h + 1), **halves}


Draw = Callable[[random.Random, Place, datetime, Any], Case]
# The number of schedules of each kind in a hundred.
KINDS: tuple[tuple[Draw, Sequence[Any], int], ...] = (
    (_phrase, forms.PHRASES, 17),
    (_cron, forms.DAILY, 9),
    (_cron, forms.SELDOM, 43),
    (_cron, forms.NIGHTLY, 11),
    (_cron, forms.OFTEN, 1),
    (_elapsed, forms.SPANS, 3),
    (_after_each_run, forms.PAUSES, 2),
    (_once, one_shots.FORMS, 14),
)
