"""The acts of beats in separate processes, with given clocks."""

from datetime import datetime
from typing import Any

from django.db import DatabaseError, connection

from agents_app.models import Agent, Firing, Schedule, Scheduler, Tenant
from agents_app.schedules import due, edit, firings
from agents_app.schedules.edit import Draft
from tests.races import removed_guards
from tests.races.beat_acts import wait_until


def create(now: str, drafts: list[dict[str, Any]]) -> None:
    """Create schedules with overlap `queue`, so that only time decides which instants fire."""
    tenant = Tenant.objects.create(name="default")
    Scheduler.objects.create(pk=1, state="running")
    agent = Agent.objects.create(
        tenant=tenant, name="agent", command=["true"], revision=1, work_queue_size=10_000
    )
    for number, draft in enumerate(drafts):
        values = {"name": f"{number}", "overlap": "queue", "timezone": "UTC", **draft}
        edit.create(agent, Draft(**values), "ann", datetime.fromisoformat(now))


def run_beat(start_at: float, moments: list[str], broken: bool = False) -> list[str]:
    """Run a beat whose clock shows these times one after the other; returns the errors."""
    if broken:
        removed_guards.claims_without_guards()
    wait_until(start_at)
    return [error for moment in moments for error in _tick(datetime.fromisoformat(moment))]


def _tick(now: datetime) -> list[str]:
    try:
        due.resume_expired_pauses(now)
        due.claim_due_schedules(now)
        firings.decide_firings(now)
    except DatabaseError as error:
        connection.close()
        return [repr(error)]
    return []


def ledger() -> list[list[str]]:
    """Schedule, due time, decision time, outcome and reason of each firing, as text."""
    rows = Firing.objects.order_by("schedule_id", "due_at", "pk")
    columns = ("schedule__name", "due_at", "decide_at", "outcome", "reason")
    return [[str(value) for value in row] for row in rows.values_list(*columns)]


def counts() -> dict[str, list[Any]]:
    """The fired and missed counts and the state of each schedule."""
    columns = ("name", "fire_count", "missed_count", "state")
    return {name: row for name, *row in Schedule.objects.values_list(*columns)}
