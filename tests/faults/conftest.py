"""Fleets of real processes: one per module, because starting one takes seconds."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.real_fleet import QUICK, RealFleet
from tests.parts.stack_part import PrivateStack

# Faults of one database are collected on that database; tests that do not depend on the database
# are collected on SQLite only.
collect_ignore = (
    [
        *("test_sqlite_locked.py", "test_gateway_sqlite.py"),
        *("test_guard.py", "test_gateway_clients.py", "test_containers.py"),
        *("test_redis.py", "test_starts.py", "test_worker_faults.py", "test_gateway_redis.py"),
    ]
    if os.environ.get("DROVER_TEST_DATABASE") == "postgres"
    else ["test_postgres_away.py", "test_gateway_postgres.py"]
)

NewFleet = Callable[..., RealFleet]


@pytest.fixture(scope="module")
def new_fleet(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: Callable[[Path], str]
) -> Iterator[NewFleet]:
    """Keyword arguments become variables; all processes end with the module."""
    made: list[RealFleet] = []

    def make(redis_url: str = "", database_url: str = "", **env: str) -> RealFleet:
        directory = tmp_path_factory.mktemp("fleet")
        url = database_url or migrated_database(directory / "data")
        made.append(RealFleet(PrivateStack(directory, url, redis_url, **{**QUICK, **env})))
        return made[-1]

    yield make
    for fleet in made:
        fleet.close()
