"""The comparison with the oracle can fail: it finds every way in which the product is broken."""

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
RESTLESS = [
    ZoneInfo(name)
    for name in (
        *("Europe/Berlin", "Antarctica/Troll", "Asia/Beirut"),
        *("America/Santiago", "Australia/Lord_Howe", "Pacific/Chatham"),
    )
]


@pytest.fixture
def forgetful() -> Iterator[None]:
    """Fires that were found with another product are not remembered."""
    fires._next_cron_fire.cache_clear()
    yield
    fires._next_cron_fire.cache_clear()


def _differences(agent: Agent) -> list[str]:
    cases = mixture(random.Random(3), RESTLESS, START, 150)
    weeks = Simulation(agent, cases, START, seed=3)
    weeks.run(END)
    return weeks.differences()


def test_the_product_as_it_is_keeps_its_promises(durable_agent: Agent, forgetful: None):
    assert all(changes(zone, START, END) for zone in RESTLESS)
    assert _differences(durable_agent) == []


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_product_is_found(
    durable_agent: Agent, forgetful: None, monkeypatch: pytest.MonkeyPatch, name: str
):
    BREAKS[name](monkeypatch)
    assert _differences(durable_agent) != []
