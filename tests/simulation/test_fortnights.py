"""The comparison of test_year.py for two weeks around unusual clock changes."""

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
def test_no_firing_is_missing_or_duplicate_around_unusual_clock_changes(
    durable_agent: Agent, day, zone
):
    middle = datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC)
    cases = mixture(random.Random(day), [ZoneInfo(zone)], middle - WEEK, 100)
    fortnight = Simulation(durable_agent, cases, middle - WEEK, seed=14)
    fortnight.run(middle + WEEK)
    assert fortnight.differences() == []
    assert Firing.objects.count() > 600
