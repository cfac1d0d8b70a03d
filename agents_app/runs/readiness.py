"""What a run requires before it starts: a worker, beat, and an agent that nothing blocks."""

from datetime import datetime, timedelta
from typing import Any

from agents_app.clock import local
from agents_app.models import Agent, Scheduler, Tenant, Worker, WorkItem
from agents_app.runs.block_reasons import find_blocks

SILENT_BEAT_SECONDS = 30
ALL_PROCESSES = ["worker", "beat"]


def missing_processes(scheduler: Scheduler, now: datetime) -> list[str]:
    """The kinds of processes that are missing: `worker` and `beat`.

    `scheduler` is the row that `read_scheduler` returns."""
    missing = []
    if not Worker.objects.filter(ended_at__isnull=True, lease_until__gt=now).exists():
        missing.append("worker")
    recent = now - timedelta(seconds=SILENT_BEAT_SECONDS)
    if not (scheduler.last_check_at and scheduler.last_check_at > recent):
        missing.append("beat")
    return missing


def scheduler_state(row: Scheduler, now: datetime) -> str:
    """The state for users: `stopped` for a drain whose processes were killed before its end."""
    stopped = row.state == Scheduler.State.DRAINING and missing_processes(row, now) == ALL_PROCESSES
    return Scheduler.State.STOPPED.value if stopped else str(row.state)


def read_scheduler(now: datetime) -> Scheduler:
    """A copy of the row of the scheduler with the state for users, which must not be saved.

    Without a key if there is no row: then Drover was never started."""
    row = Scheduler.objects.filter(pk=1).first() or Scheduler(state=Scheduler.State.STOPPED)
    columns = {each.attname: getattr(row, each.attname) for each in row._meta.concrete_fields}
    return Scheduler(**columns | {"state": scheduler_state(row, now)})


def blocked_because(agent: Agent, tenant: Tenant, scheduler: Scheduler | None = None) -> str:
    """The first block of the agent by these rows: its text, until when it holds if that is known,
    and the note of a pause; empty: nothing blocks the agent."""
    block = next(iter(find_blocks(agent, tenant, scheduler)), None)
    if block is None:
        return ""
    rows: dict[str, Any] = {"agent": agent, "tenant": tenant}
    until = block.ends_at(rows)
    note = rows[block.row].pause_note if block.column == "paused_at" else ""
    return block.text + (f" until {local(until)}" if until else "") + (f": {note}" if note else "")


def requeued_because(reason: str) -> str:
    """The error that put a work item back into the queue, without the code of the error."""
    return reason.removeprefix("docker_unavailable: ")


def waits_because(item: WorkItem) -> str:
    """The same as `why_waiting` without further queries, for lists: the item must have been read
    with its agent and tenant, and the scheduler is left out."""
    block = blocked_because(item.agent, item.agent.tenant)
    return block or requeued_because(item.reason) or "waiting for a slot"


def why_waiting(item: WorkItem) -> str:
    """Why a queued work item does not start yet: the block of its agent, the error that put it
    back into the queue, or the number of items before it."""
    agent = Agent.objects.select_related("tenant").get(pk=item.agent_id)
    scheduler = Scheduler.objects.filter(pk=1).first()
    block = blocked_because(agent, agent.tenant, scheduler)
    if reason := block or requeued_because(item.reason):
        return reason
    before = WorkItem.objects.filter(
        agent=item.agent_id, state=WorkItem.State.QUEUED, pk__lt=item.pk
    ).count()
    return f"no slot is free, {before} queued before it"
