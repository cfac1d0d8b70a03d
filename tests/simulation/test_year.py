"""Time passes for many schedules: each instant is in the ledger once, as its policies say."""

import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from agents_app.models import Agent, Firing
from tests.simulation.mixture import mixture
from tests.simulation.simulation import Simulation
from tests.simulation.zones import FORTNIGHTS, YEAR_END, YEAR_START, ZONES

WEEK = timedelta(days=7)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_in_a_year_nothing_is_missing_and_nothing_is_double(durable_agent: Agent):
    """A thousand schedules in twenty zones."""
    cases = mixture(random.Random(2026), ZONES, YEAR_START, 1000)
    year = Simulation(durable_agent, cases, YEAR_START, seed=2026)
    year.run(YEAR_END)
    assert year.differences() == []
    assert Firing.objects.count() > 140_000


@pytest.mark.parametrize(("day", "zone"), FORTNIGHTS)
def test_nor_is_it_in_a_fortnight_of_unusual_clocks(durable_agent: Agent, day, zone):
    middle = datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC)
    cases = mixture(random.Random(day), [ZoneInfo(zone)], middle - WEEK, 100)
    fortnight = Simulation(durable_agent, cases, middle - WEEK, seed=14)
    fortnight.run(middle + WEEK)
    assert fortnight.differences() == []
    assert Firing.objects.count() > 600
