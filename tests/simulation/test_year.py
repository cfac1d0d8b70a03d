"""Time passes for many schedules: each instant is in the ledger once, as its policies say."""

import random

import pytest

from agents_app.models import Agent, Firing
from tests.simulation.mixture import mixture
from tests.simulation.simulation import Simulation
from tests.simulation.zones import YEAR_END, YEAR_START, ZONES


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.fault("F19")
def test_in_a_year_nothing_is_missing_and_nothing_is_double(
    durable_agent: Agent, on_postgres: bool
):
    """Three hundred schedules in twenty zones; on the second database, where the sums are the same
    and only the statements are others, five for each zone."""
    count, firings = (100, 9_000) if on_postgres else (300, 27_000)
    cases = mixture(random.Random(2026), ZONES, YEAR_START, count)
    year = Simulation(durable_agent, cases, YEAR_START, seed=2026)
    year.run(YEAR_END)
    assert year.differences() == []
    assert Firing.objects.count() > firings
