"""Clients of the API with every scope, and a second tenant with a fleet of its own."""

from collections.abc import Iterator

import pytest

from agents_app.models import Tenant
from gateway_app.access import rate_limits
from gateway_app.api import waiting
from tests.agents_app.fleet import Fleet
from tests.gateway_app.api.calling import Api, api_of


@pytest.fixture(autouse=True)
def _fresh_rate_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids start again with every test: what one has used up is not the next one's fault."""
    monkeypatch.setattr(rate_limits, "LIMIT", rate_limits.RateLimit(rate=10_000, burst=10_000))
    monkeypatch.setattr(rate_limits, "WRONG_TOKENS", rate_limits.RateLimit(rate=0.5, burst=100))
    monkeypatch.setattr(rate_limits, "_valid", set())


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no worker here that could end a run."""
    monkeypatch.setattr(waiting, "LONGEST_SECONDS", 0.0)


@pytest.fixture
def reader(fleet: Fleet) -> Api:
    return api_of(fleet.tenant, "read", "reader")


@pytest.fixture
def api(fleet: Fleet) -> Api:
    return api_of(fleet.tenant, "operate")


@pytest.fixture
def admin(fleet: Fleet) -> Api:
    """Of the project's own tenant: an operator."""
    return api_of(fleet.tenant, "admin", "root")


@pytest.fixture
def others(db: None) -> Iterator[Fleet]:
    yield Fleet(Tenant.objects.create(name="acme"))
