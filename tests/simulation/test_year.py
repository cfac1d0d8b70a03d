"""A simulated year of many schedules: each instant is recorded once, by its policies."""

import random

import pytest

from agents_app.models import Agent, Firing
from tests.simulation.mixture import mixture
from tests.simulation.simulation import Simulation
from tests.simulation.zones import YEAR_END, YEAR_START, ZONES


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.fault("F19")
def test_in_a_year_no_firing_is_missing_or_duplicate(durable_agent: Agent, on_postgres: bool):
    """Three hundred schedules in twenty zones; five for each zone on PostgreSQL, where only the
    statements differ."""
    count, firings = (100, 9_000) if on_postgres else (300, 27_000)
    cases = mixture(random.Random(2026), ZONES, YEAR_START, count)
    year = Simulation(durable_agent, cases, YEAR_START, seed=2026)
    year.run(YEAR_END)
    assert year.differences() == []
    assert Firing.objects.count() > firings
