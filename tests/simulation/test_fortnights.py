"""Two weeks around the days on which clocks do something unusual, as test_year.py has a year."""

import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from agents_app.models import Agent, Firing
from tests.simulation.mixture import mixture
from tests.simulation.simulation import Simulation
from tests.simulation.zones import FORTNIGHTS

WEEK = timedelta(days=7)


@pytest.mark.parametrize(("day", "zone"), FORTNIGHTS)
@pytest.mark.fault("F19")
def test_nothing_is_missing_and_nothing_is_double_when_clocks_do_unusual_things(
    durable_agent: Agent, day, zone
):
    middle = datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC)
    cases = mixture(random.Random(day), [ZoneInfo(zone)], middle - WEEK, 100)
    fortnight = Simulation(durable_agent, cases, middle - WEEK, seed=14)
    fortnight.run(middle + WEEK)
    assert fortnight.differences() == []
    assert Firing.objects.count() > 600
