"""The comparison with the oracle can fail: it finds every deliberate defect of the product."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from agents_app.models import Agent
from agents_app.triggers import fires
from tests.simulation.breaks import BREAKS
from tests.simulation.mixture import mixture
from tests.simulation.simulation import Simulation
from tests.simulation.wall_clock import changes

# In the north the clocks go forward in these days, in the south they go back.
START = datetime(2026, 3, 27, 12, tzinfo=UTC)
END = datetime(2026, 4, 6, tzinfo=UTC)
CHANGING_ZONES = [
    ZoneInfo(name)
    for name in (
        *("Europe/Berlin", "Antarctica/Troll", "Asia/Beirut"),
        *("America/Santiago", "Australia/Lord_Howe", "Pacific/Chatham"),
    )
]


@pytest.fixture
def empty_fire_cache() -> Iterator[None]:
    """Clears the cache of fire times, which an earlier defect may have filled."""
    fires._next_cron_fire.cache_clear()
    yield
    fires._next_cron_fire.cache_clear()


def _differences(agent: Agent) -> list[str]:
    cases = mixture(random.Random(3), CHANGING_ZONES, START, 150)
    weeks = Simulation(agent, cases, START, seed=3)
    weeks.run(END)
    return weeks.differences()


def test_the_unchanged_product_has_no_differences(durable_agent: Agent, empty_fire_cache: None):
    assert all(changes(zone, START, END) for zone in CHANGING_ZONES)
    assert _differences(durable_agent) == []


@pytest.mark.parametrize("name", BREAKS)
def test_each_deliberate_defect_causes_differences(
    durable_agent: Agent, empty_fire_cache: None, monkeypatch: pytest.MonkeyPatch, name: str
):
    BREAKS[name](monkeypatch)
    assert _differences(durable_agent) != []
