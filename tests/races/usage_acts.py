"""The acts of concurrent runs that report usage, and the totals after them."""

import time
from typing import Any

from django.db import DatabaseError, connection

from agents_app.budgets import holds
from agents_app.models import Agent, Run, RunEvent, Tenant, Usage
from tests.races.beat_acts import PAUSE_SECONDS, wait_until
from tests.races.checks import EPOCH


def cap_project(tokens_per_month: int) -> None:
    settings = {"timezone": "UTC", "budget": {"tokens_per_month": tokens_per_month}}
    Tenant.objects.update(settings=settings)


def spend(start_at: float, agent_id: int, times: int) -> list[str]:
    """Each running run of the agent uses one token so many times; returns the errors."""
    runs = list(Run.objects.filter(agent=agent_id, state="running").values_list("pk", flat=True))
    errors = []
    wait_until(start_at)
    for _ in range(times):
        for run_id in runs:
            try:
                holds.record_usage(run_id, 1, 0, 0, 0.01, EPOCH)
            except DatabaseError as error:
                errors.append(repr(error))
                connection.close()
    return errors


def sweep_budgets(start_at: float, seconds: float) -> list[str]:
    until, errors = start_at + seconds, []
    wait_until(start_at)
    while time.time() < until:
        try:
            holds.sweep(EPOCH)
        except DatabaseError as error:
            errors.append(repr(error))
            connection.close()
        time.sleep(PAUSE_SECONDS)
    return errors


def spent() -> dict[str, Any]:
    return {
        "runs": sum(Run.objects.values_list("tokens_in", flat=True)),
        "days": sum(Usage.objects.values_list("tokens", flat=True)),
        "rows": Usage.objects.count(),
        "usd": float(sum(Usage.objects.values_list("cost_usd", flat=True))),
        "agents_over": Agent.objects.filter(over_budget_until__isnull=False).count(),
        "tenants_over": Tenant.objects.filter(over_budget_until__isnull=False).count(),
        "events": RunEvent.objects.filter(name__endswith=".over_budget").count(),
        "stop_requests": Run.objects.filter(stop_requested_at__isnull=False).count(),
    }
