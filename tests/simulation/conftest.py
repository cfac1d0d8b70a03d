"""A fleet in this process, and beats in separate processes."""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents_app.conf import database_settings
from agents_app.models import Agent, Tenant
from tests.agents_app.fleet import Fleet
from tests.parts.stack_part import PrivateStack
from tests.races.arena import Arena
from tests.simulation.beats import Beats, BeatStarter

# Tests of the oracle and of the comparison do not depend on the database: run them once.
collect_ignore = (
    ["test_breaks.py", "test_mixture.py", "test_oracle.py", "test_fortnights.py"]
    if os.environ.get("DROVER_TEST_DATABASE") == "postgres"
    else []
)
NewBeats = Callable[[], Beats]


@pytest.fixture
def fleet(db: None) -> Fleet:
    return Fleet(Tenant.objects.create(name="default"))


@pytest.fixture
def durable_agent(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """An agent in a database with real commits."""
    # A warning for each of ten thousand missed instants would fill every report.
    monkeypatch.setattr(logging.getLogger("drover.due"), "level", logging.ERROR)
    return Fleet(Tenant.objects.create(name="default")).agent()


@pytest.fixture(scope="session")
def beat_starter(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: Callable[[Path], str]
) -> Iterator[BeatStarter]:
    directory = tmp_path_factory.mktemp("simulation") / "stack"
    only = BeatStarter(PrivateStack(directory, migrated_database(directory / "data")))
    yield only
    only.close()


@pytest.fixture
def new_beats(
    beat_starter: BeatStarter, tmp_path: Path, migrated_database: Callable[[Path], str]
) -> Iterator[NewBeats]:
    """Each group of beats has a private database."""
    arenas: list[Arena] = []

    def make() -> Beats:
        directory = tmp_path / f"beats{len(arenas)}"
        directory.mkdir()
        name = database_settings(migrated_database(directory))["NAME"]
        arenas.append(Arena(beat_starter, name, directory))
        return Beats(arenas[-1])

    yield make
    for arena in arenas:
        arena.close()


@pytest.fixture
def beats(new_beats: NewBeats) -> Beats:
    return new_beats()
