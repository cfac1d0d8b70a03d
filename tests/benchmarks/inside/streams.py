"""Creates the token of the subscribers, and finds the tenant of the entries."""

from datetime import UTC, datetime
from typing import Any

from agents_app.accounts.tokens import create_token
from agents_app.models import Tenant
from tests.benchmarks.inside.fleet import TENANT


def let_in() -> dict[str, Any]:
    tenant = Tenant.objects.get(name=TENANT)
    token = create_token(tenant, "bench", "read", "the benchmark", datetime.now(UTC))
    return {"tenant_id": tenant.pk, "token": token.secret}
