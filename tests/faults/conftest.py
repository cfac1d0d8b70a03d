"""Fleets of real processes: one for a module, because starting one takes seconds."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.real_fleet import QUICK, RealFleet
from tests.parts.stack_part import PrivateStack

NewFleet = Callable[..., RealFleet]


@pytest.fixture(scope="module")
def new_fleet(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: Callable[[Path], str]
) -> Iterator[NewFleet]:
    """Keyword arguments become variables; all processes end with the module."""
    made: list[RealFleet] = []

    def make(redis_url: str = "", **env: str) -> RealFleet:
        directory = tmp_path_factory.mktemp("fleet")
        url = migrated_database(directory / "data")
        made.append(RealFleet(PrivateStack(directory, url, redis_url, **QUICK, **env)))
        return made[-1]

    yield make
    for fleet in made:
        fleet.close()
