"""The fleet that tests of the core work on, and a real Redis where hints really arrive."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents_app.conf import CONF
from agents_app.events import relay
from agents_app.launch import definition, prepare
from agents_app.models import Tenant
from agents_app.worker.execute import Host
from tests.agents_app.fleet import NOON, Fleet
from tests.agents_app.project_files import Project
from tests.parts.redis_part import RedisServer, valkey_binary

# On SQLite there is one writer at a time, and the end of a run is several statements.
# On PostgreSQL the signatures of webhooks, which need no rows, are not tested a second time.
collect_ignore = (
    ["webhooks/providers"]
    if os.environ.get("DROVER_TEST_DATABASE") == "postgres"
    else [
        *("runs/test_handover.py", "runs/test_lock_order.py"),
        "notifications/test_notify_late.py",
    ]
)


def _new_fleet() -> Fleet:
    # Ids start again with every test, so what a worker keeps by id must not outlive one.
    definition.definition_of.cache_clear()
    prepare._state_dir.cache_clear()
    return Fleet(Tenant.objects.create(name="default"))


@pytest.fixture
def fleet(db: None) -> Fleet:
    """Inside a transaction that is undone after the test; nothing is ever committed."""
    return _new_fleet()


@pytest.fixture
def durable_fleet(transactional_db: None, broker: RedisServer) -> Fleet:
    """Commits are real, so that other threads and processes see them."""
    return _new_fleet()


@pytest.fixture
def host(fleet: Fleet) -> Host:
    """The worker process that executes runs in a test: this one."""
    return Host(fleet.worker().pk, lambda: NOON)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture(scope="session")
def _redis_of_this_process() -> Iterator[RedisServer]:
    CONF.data.mkdir(parents=True, exist_ok=True)
    server = RedisServer(valkey_binary(), CONF.data).start()
    yield server
    server.stop()


@pytest.fixture
def broker(_redis_of_this_process: RedisServer) -> Iterator[RedisServer]:
    """The Redis that this process itself publishes to, empty; a test may kill it."""
    server = _redis_of_this_process
    # A hint of an earlier test may still be on its way.
    relay.drain(10)
    server.client().flushall()
    yield server
    server.thaw()
    assert server.process is not None
    if server.process.poll() is not None:
        server.start()
