"""The fleet that tests of the core work on, and a real Redis where hints really arrive."""

from collections.abc import Iterator

import pytest

from agents_app import execute
from agents_app.conf import CONF
from agents_app.models import Tenant
from tests.agents.fleet import Fleet
from tests.parts.redis_part import RedisServer, valkey_binary


def _new_fleet() -> Fleet:
    # Ids start again with every test, so what a worker keeps by id must not outlive one.
    execute.definition_of.cache_clear()
    execute._state_dir.cache_clear()
    return Fleet(Tenant.objects.create(name="default"))


@pytest.fixture
def fleet(db: None) -> Fleet:
    """Inside a transaction that is undone after the test; nothing is ever committed."""
    return _new_fleet()


@pytest.fixture
def durable_fleet(transactional_db: None) -> Fleet:
    """Commits are real, so that other threads and processes see them."""
    return _new_fleet()


@pytest.fixture
def broker() -> Iterator[RedisServer]:
    """The Redis this very process publishes to, empty."""
    CONF.data.mkdir(parents=True, exist_ok=True)
    server = RedisServer(valkey_binary(), CONF.data).start()
    server.client().flushall()
    yield server
    server.stop()
