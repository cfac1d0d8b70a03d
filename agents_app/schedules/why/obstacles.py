"""The conditions that keep a schedule from starting runs now, each with a code and a text."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from agents_app.console import Obstacle
from agents_app.models import LENT, Agent, Run, Schedule, Scheduler, Tenant
from agents_app.runs import find_blocks, missing_processes, read_scheduler
from agents_app.schedules import read_live_states
from agents_app.triggers import LATE
from agents_app.triggers.preview import clock

S = Schedule.State
# The number of runs that a text about full slots names.
MAX_RUNS_NAMED = 5


@dataclass(frozen=True, slots=True)
class ObstacleContext:
    """The rows that decide about a schedule at a moment.

    `scheduler` has no key if Drover was never started, which `_processes` reports."""

    schedule: Schedule
    agent: Agent
    tenant: Tenant
    scheduler: Scheduler
    now: datetime

    @property
    def rows(self) -> dict[str, Any]:
        scheduler = self.scheduler if self.scheduler.pk else None
        return {"agent": self.agent, "tenant": self.tenant, "scheduler": scheduler}

    def clock(self, moment: datetime) -> str:
        return clock(moment, self.schedule.timezone)


def find_obstacles(schedule: Schedule, now: datetime) -> tuple[Obstacle, ...]:
    """All obstacles in the order of _FINDERS; without one the schedule fires when it is due."""
    agent = Agent.objects.select_related("tenant").get(pk=schedule.agent_id)
    context = ObstacleContext(schedule, agent, agent.tenant, read_scheduler(now), now)
    return tuple(obstacle for find in _FINDERS for obstacle in find(context))


# --- the schedule itself --------------------------------------------------------------------


def _schedule_state(context: ObstacleContext) -> Iterator[Obstacle]:
    schedule = context.schedule
    if schedule.state == S.PAUSED:
        until = f" until {context.clock(schedule.pause_until)}" if schedule.pause_until else ""
        yield Obstacle("paused", f"the schedule is paused{until}{_with_note(schedule.pause_note)}")
    elif schedule.state == S.COMPLETED:
        yield Obstacle("completed", "the schedule fires once and has fired")
    elif schedule.state == S.FAILED:
        yield Obstacle(
            "failed", f"the schedule fires once and failed{_with_note(schedule.pause_note)}"
        )
    elif schedule.state == S.CANCELED:
        yield Obstacle("canceled", "the schedule is canceled")


def _overdue(context: ObstacleContext) -> Iterator[Obstacle]:
    schedule, now = context.schedule, context.now
    at = schedule.next_fire_at
    if schedule.state == S.ACTIVE and at and now - at > LATE:
        yield Obstacle("overdue", f"due since {context.clock(at)}, but not fired yet")


# --- the scheduler, the tenant and the agent ------------------------------------------------


def _blocks(context: ObstacleContext) -> Iterator[Obstacle]:
    for block in find_blocks(**context.rows):
        if block.never_valid:
            yield Obstacle(block.code, block.refusal(context.agent.pk))
        else:
            yield Obstacle(block.code, block.describe(context.rows, context.clock))


def _processes(context: ObstacleContext) -> Iterator[Obstacle]:
    scheduler = context.scheduler
    if scheduler.pk and scheduler.state != Scheduler.State.RUNNING:
        return
    missing = missing_processes(scheduler, context.now)
    if "beat" in missing:
        yield Obstacle("no_beat", "beat has not checked the schedules recently: is Drover running?")
    if "worker" in missing:
        yield Obstacle("no_worker", "no worker is alive: due work waits for a worker")


def _definition(context: ObstacleContext) -> Iterator[Obstacle]:
    agent = context.agent
    # Without a revision no version is in use, which is a block.
    if agent.definition_error and agent.revision:
        first = agent.definition_error.splitlines()[0]
        used = "the last valid version is used"
        yield Obstacle("agent_invalid", f"the agent's file has errors, {used}: {first}")


# --- slots ------------------------------------------------------------------------------------


def _own_work(context: ObstacleContext) -> Iterator[Obstacle]:
    schedule = context.schedule
    if schedule.overlap == Schedule.Overlap.SKIP and read_live_states([schedule.pk]).get(
        schedule.pk
    ):
        text = (
            "the schedule's earlier work is not finished: a firing would be skipped (overlap: skip)"
        )
        yield Obstacle("already_running", text)


def _slots(context: ObstacleContext) -> Iterator[Obstacle]:
    agent, tenant = context.agent, context.tenant
    busy = Run.objects.filter(slot__isnull=False).order_by("pk")
    # A run that has lent its slot does not use it: the borrower does.
    holders = list(busy.filter(agent=agent, slot__lt=LENT))
    effect = _effect_of_full_slots(context.schedule)
    if agent.scale and len(holders) >= agent.scale:
        slots = "the only slot" if agent.scale == 1 else f"all {agent.scale} slots"
        verb = "is" if agent.scale == 1 else "are"
        text = f"{slots} of {agent.name} {verb} busy{effect}: {_list_runs(holders, context)}"
        yield Obstacle("at_capacity", text)
    elif tenant.scale is not None and _under_cap(busy, tenant).count() >= tenant.scale:
        holders = list(_under_cap(busy, tenant))
        slots = f"all {tenant.scale} slots of the project are in use"
        text = f"{slots}{effect}: {_list_runs(holders, context)}"
        yield Obstacle("project_at_capacity", text)


def _under_cap(busy: "QuerySet[Run]", tenant: Tenant) -> "QuerySet[Run]":
    return busy.filter(tenant=tenant).exclude(project_slot__gte=LENT)


def _effect_of_full_slots(schedule: Schedule) -> str:
    if schedule.overlap == Schedule.Overlap.SKIP:
        return ", a firing would be skipped (overlap: skip)"
    return f", a firing would wait (overlap: {schedule.overlap})"


def _list_runs(runs: list[Run], context: ObstacleContext) -> str:
    named = [f"run {run.pk} ({_run_since(run, context)})" for run in runs[:MAX_RUNS_NAMED]]
    more = len(runs) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _run_since(run: Run, context: ObstacleContext) -> str:
    requester = f", {run.requested_by}" if run.requested_by else ""
    return f"{run.state} since {context.clock(run.started_at or run.created_at)}{requester}"


def _with_note(text: str) -> str:
    return f": {text}" if text else ""


_FINDERS: tuple[Callable[[ObstacleContext], Iterator[Obstacle]], ...] = (
    _schedule_state,
    _blocks,
    _processes,
    _definition,
    _own_work,
    _slots,
    _overdue,
)
