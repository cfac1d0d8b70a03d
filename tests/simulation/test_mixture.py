"""The simulated schedules have every kind, zone and policy, and times of clock changes."""

import random
from collections import Counter
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tests.simulation.forms import OFTEN, PHRASES, SELDOM
from tests.simulation.meanings import AfterEachRun, ElapsedInterval, LocalTimes, Once
from tests.simulation.mixture import Case, mixture
from tests.simulation.wall_clock import DAY, changes, readings
from tests.simulation.zones import FORTNIGHTS, YEAR_END, YEAR_START, ZONES


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return mixture(random.Random(2026), ZONES, YEAR_START, 1000)


def test_the_same_seed_makes_the_same_schedules(cases):
    assert mixture(random.Random(2026), ZONES, YEAR_START, 1000) == cases


def test_the_mixture_has_schedules_of_every_zone_and_policy(cases):
    for values in (
        [case.place.zone for case in cases],
        [case.place.gap for case in cases],
        [case.place.overlap_hour for case in cases],
        [case.catch_up for case in cases],
    ):
        assert min(Counter(values).values()) >= 20
    assert len({case.place.zone for case in cases}) == len(ZONES) == 20
    assert len({(case.place.gap, case.place.overlap_hour) for case in cases}) == 9


def test_the_mixture_has_schedules_of_every_kind_and_form(cases):
    kinds = Counter(type(case.meaning) for case in cases)
    assert min(kinds[kind] for kind in (LocalTimes, ElapsedInterval, AfterEachRun, Once)) >= 20
    ends = {" ".join(case.text.split()[2:]) for case in cases}
    assert {" ".join(form.split()[2:]) for form in (*SELDOM, *OFTEN)} <= ends
    starts = {" ".join(case.text.split()[:2]) for case in cases}
    assert {" ".join(phrase.split()[:2]) for phrase, _ in PHRASES if "{" not in phrase} <= starts


def test_many_times_of_the_mixture_occur_twice_or_are_skipped(cases):
    """Of schedules whose policies have an effect."""
    found: Counter[str] = Counter()
    for case in cases:
        meaning = case.meaning
        if isinstance(meaning, LocalTimes) and not meaning.line.follows_real_clock:
            for wall in meaning.line.walls(YEAR_START.date(), YEAR_END.date()):
                before, after = readings(wall, case.place.zone)
                found[case.place.gap] += before > after
                found[case.place.overlap_hour] += before < after
    assert len(found) == 6
    assert min(found.values()) > 30


def test_every_unusual_fortnight_but_one_has_a_clock_change():
    assert [zone for day, zone in FORTNIGHTS if not _changes(day, zone)] == ["Asia/Tokyo"]


def _changes(day: str, zone: str) -> list[datetime]:
    middle = datetime.fromisoformat(day).replace(tzinfo=UTC)
    return changes(ZoneInfo(zone), middle - 7 * DAY, middle + 7 * DAY)
