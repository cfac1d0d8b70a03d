"""Clients of the API with each scope, and a second tenant with its own fleet."""

from collections.abc import Iterator

import pytest

from agents_app.models import Tenant
from gateway_app.access import rate_limits
from gateway_app.api import waiting
from tests.agents_app.fleet import Fleet
from tests.gateway_app.api.calling import Api, api_of


@pytest.fixture(autouse=True)
def _fresh_rate_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has new limits: the ids of tokens are the same in every test."""
    monkeypatch.setattr(rate_limits, "LIMIT", rate_limits.RateLimit(rate=10_000, burst=10_000))
    monkeypatch.setattr(rate_limits, "WRONG_TOKENS", rate_limits.RateLimit(rate=0.5, burst=100))
    monkeypatch.setattr(rate_limits, "_valid", set())


@pytest.fixture(autouse=True)
def _no_wait_for_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker runs in these tests, so no run would end during the wait."""
    monkeypatch.setattr(waiting, "LONGEST_SECONDS", 0.0)


@pytest.fixture
def reader(fleet: Fleet) -> Api:
    return api_of(fleet.tenant, "read", "reader")


@pytest.fixture
def api(fleet: Fleet) -> Api:
    return api_of(fleet.tenant, "operate")


@pytest.fixture
def admin(fleet: Fleet) -> Api:
    """An admin of the default tenant, that is, an operator."""
    return api_of(fleet.tenant, "admin", "root")


@pytest.fixture
def others(db: None) -> Iterator[Fleet]:
    yield Fleet(Tenant.objects.create(name="acme"))
