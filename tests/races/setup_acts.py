"""Creates the agents, schedules and workers of a race, and reads them after it."""

import os
from datetime import UTC, datetime, timedelta
from typing import Any

from agents_app.models import Agent, Run, Schedule, Scheduler, Tenant, Worker, WorkItem
from tests.races import checks
from tests.races.checks import EPOCH


def make_agents(count: int = 1, cap: int | None = None, **columns: Any) -> list[int]:
    tenant = Tenant.objects.create(name="default", scale=cap)
    Scheduler.objects.create(pk=1, state="running")
    values: dict[str, Any] = {"command": ["true"], "revision": 1, "work_queue_size": 10_000}
    values |= columns
    agents = [Agent(tenant=tenant, name=f"agent-{n}", **values) for n in range(count)]
    return [agent.pk for agent in Agent.objects.bulk_create(agents)]


def make_schedules(agents: list[int], count: int, expressions: list[str], **columns: Any) -> None:
    """Create `count` schedules for each agent, all first due at the epoch."""
    Schedule.objects.bulk_create(
        Schedule(
            tenant=Tenant.objects.get(),
            agent_id=agent_id,
            name=f"{number}",
            expression=expressions[number % len(expressions)],
            next_fire_at=EPOCH,
            catch_up="all",
            catch_up_window_seconds=86_400,
            **columns,
        )
        for agent_id in agents
        for number in range(count)
    )


def make_worker() -> int:
    now = datetime.now(UTC)
    worker = Worker.objects.create(
        name="racer",
        host="here",
        boot_id="this",
        pid=os.getpid(),
        pid_started=0,
        concurrency=1,
        started_at=now,
        lease_until=now + timedelta(hours=1),
    )
    return worker.pk


def find(check: str, **arguments: Any) -> list[str]:
    """The problems that a check finds."""
    found: list[str] = getattr(checks, check)(**arguments)
    return found


def count(model: str, **filters: Any) -> int:
    tables: dict[str, Any] = {"run": Run, "work": WorkItem, "schedule": Schedule}
    return int(tables[model].objects.filter(**filters).count())
