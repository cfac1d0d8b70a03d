"""Creates agents with queued work or schedules as rows, and releases the work."""

import math
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from agents_app.database.transactions import in_transaction
from agents_app.events import relay
from agents_app.models import Agent, Schedule, Tenant, Trigger, WorkItem
from agents_app.runs import dispatch

# Not the tenant of the project directory: beat removes agents from that one that have no files.
TENANT = "bench"


def write_agents(
    count: int,
    scale: int,
    command: Sequence[str],
    paused: bool = False,
    runtime: Mapping[str, Any] | None = None,
) -> None:
    now = datetime.now(UTC)
    tenant, _ = Tenant.objects.get_or_create(
        name=TENANT, defaults={"paused_at": now if paused else None}
    )
    agents = [
        Agent(
            tenant=tenant,
            name=f"agent{number}",
            scale=scale,
            command=list(command),
            runtime=dict(runtime or {}),
            work_queue_size=1_000_000,
            revision=1,
        )
        for number in range(count)
    ]
    Agent.objects.bulk_create(agents)


def write_work(
    agents: int,
    scale: int,
    command: Sequence[str],
    items: int,
    runtime: Mapping[str, Any] | None = None,
) -> None:
    """Create queued work; it starts with `release`, because the tenant is paused."""
    write_agents(agents, scale, command, paused=True, runtime=runtime)
    now = datetime.now(UTC)
    owners = list(Agent.objects.order_by("id"))
    work = [
        WorkItem(
            tenant_id=owners[number % agents].tenant_id,
            agent=owners[number % agents],
            trigger=Trigger.MANUAL,
            created_at=now,
            available_at=now,
            trace_id=f"{number:032x}",
        )
        for number in range(items)
    ]
    WorkItem.objects.bulk_create(work, batch_size=1000)


def release() -> float:
    """Resume the tenant and fill all slots; returns the start time."""
    agents = list(Agent.objects.values_list("pk", flat=True))
    in_transaction(lambda: Tenant.objects.filter(name=TENANT).update(paused_at=None))
    began_at = time.time()
    for agent_id in agents:
        dispatch.admit_waiting(agent_id, datetime.now(UTC))
    relay.drain()
    return began_at


def write_schedules(count: int) -> None:
    """Create schedules of the existing agents; due one second apart, from tomorrow."""
    owners = list(Agent.objects.order_by("id"))
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    schedules = [
        Schedule(
            tenant_id=owners[number % len(owners)].tenant_id,
            agent=owners[number % len(owners)],
            name=f"schedule{number}",
            expression=_expression(number, tomorrow),
            next_fire_at=tomorrow + timedelta(seconds=number),
        )
        for number in range(count)
    ]
    Schedule.objects.bulk_create(schedules, batch_size=1000)


def arm(in_seconds: float, apart_seconds: float = 0.0) -> float:
    """Make every schedule due once: all in the same second, or one after the other."""
    first = datetime.fromtimestamp(math.ceil(time.time() + in_seconds), UTC)
    if not apart_seconds:
        in_transaction(lambda: Schedule.objects.update(next_fire_at=first))
        return first.timestamp()
    for number, schedule in enumerate(Schedule.objects.order_by("id")):
        schedule.next_fire_at = first + timedelta(seconds=apart_seconds * number)
        in_transaction(schedule.save)
    return first.timestamp()


def write_history(items: int) -> None:
    """Create finished work of the existing schedules: an empty database would be too fast."""
    now = datetime.now(UTC)
    owners = list(Schedule.objects.order_by("id")[:1000])
    work = [
        WorkItem(
            tenant_id=owners[number % len(owners)].tenant_id,
            agent_id=owners[number % len(owners)].agent_id,
            schedule=owners[number % len(owners)],
            trigger=Trigger.SCHEDULE,
            state=WorkItem.State.DONE,
            created_at=now,
            available_at=now,
            finished_at=now,
        )
        for number in range(items)
    ]
    WorkItem.objects.bulk_create(work, batch_size=1000)


def _expression(number: int, due_at: datetime) -> str:
    """A time in half a year, so that nothing fires twice; 1440 values against cache effects."""
    return f"{number % 60} {number // 60 % 24} 1 {(due_at.month + 5) % 12 + 1} *"
