"""What would keep a schedule from running at this moment, each in a sentence."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from agents_app.models import LENT, Agent, Run, Schedule, Scheduler, Tenant
from agents_app.runs import missing_processes
from agents_app.schedules import LATE, live_states
from agents_app.triggers.preview import clock

S = Schedule.State
# These come and go by themselves.
PASSING = frozenset({"already_running", "at_capacity", "project_at_capacity"})
# The runs that hold the slots are named, so many of them.
RUNS_NAMED = 5


@dataclass(frozen=True, slots=True)
class Obstacle:
    """`code` is for programs."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class ObstacleContext:
    """A schedule at a moment, with its agent and tenant as they are then."""

    schedule: Schedule
    agent: Agent
    tenant: Tenant
    now: datetime

    def clock(self, moment: datetime) -> str:
        return clock(moment, self.schedule.timezone)


def find_obstacles(schedule: Schedule, now: datetime) -> tuple[Obstacle, ...]:
    """The weightiest first; none means that it fires when its time comes."""
    agent = Agent.objects.select_related("tenant").get(pk=schedule.agent_id)
    look = ObstacleContext(schedule, agent, agent.tenant, now)
    return tuple(obstacle for find in _KINDS for obstacle in find(look))


# --- the schedule itself --------------------------------------------------------------------


def _schedule_state(look: ObstacleContext) -> Iterator[Obstacle]:
    schedule = look.schedule
    if schedule.state == S.PAUSED:
        until = f" until {look.clock(schedule.pause_until)}" if schedule.pause_until else ""
        yield Obstacle("paused", f"the schedule is paused{until}{_note(schedule.pause_note)}")
    elif schedule.state == S.COMPLETED:
        yield Obstacle("completed", "it was to fire once, and has done so")
    elif schedule.state == S.FAILED:
        yield Obstacle("failed", f"it was to fire once, and failed{_note(schedule.pause_note)}")
    elif schedule.state == S.CANCELED:
        yield Obstacle("canceled", "the schedule is canceled")


def _overdue(look: ObstacleContext) -> Iterator[Obstacle]:
    schedule, now = look.schedule, look.now
    at = schedule.next_fire_at
    if schedule.state == S.ACTIVE and at and now - at > LATE:
        yield Obstacle("overdue", f"it is due since {look.clock(at)}, and nothing has fired it yet")


# --- who would have to let it run -----------------------------------------------------------


def _tenant(look: ObstacleContext) -> Iterator[Obstacle]:
    tenant = look.tenant
    if tenant.disabled_at:
        since = look.clock(tenant.disabled_at)
        yield Obstacle("tenant_disabled", f"the tenant {tenant.name} is disabled since {since}")
    if tenant.paused_at:
        since = look.clock(tenant.paused_at)
        text = f"the scheduler is paused since {since}{_note(tenant.pause_note)}"
        yield Obstacle("scheduler_paused", text)


def _scheduler(look: ObstacleContext) -> Iterator[Obstacle]:
    state = Scheduler.objects.filter(pk=1).values_list("state", flat=True).first()
    if state and state != Scheduler.State.RUNNING:
        yield Obstacle(f"scheduler_{state}", f"the scheduler is {state}: start it")
        return
    missing = missing_processes(look.now)
    if "beat" in missing:
        yield Obstacle("no_beat", "no beat has looked at the schedules lately: is Drover running?")
    if "worker" in missing:
        yield Obstacle("no_worker", "no worker is alive: what fires waits until one is")


def _agent(look: ObstacleContext) -> Iterator[Obstacle]:
    agent = look.agent
    if agent.removed_at:
        since = look.clock(agent.removed_at)
        yield Obstacle("agent_missing", f"the directory of {agent.name} is missing since {since}")
    elif agent.scale == 0:
        yield Obstacle("agent_disabled", f"the scale of {agent.name} is 0: raise it")
    if agent.definition_error:
        first = agent.definition_error.splitlines()[0]
        what = "its last good definition goes on" if agent.scale else "it never had a good one"
        yield Obstacle("agent_invalid", f"the file of {agent.name} is wrong, {what}: {first}")
    if agent.paused_at:
        since = look.clock(agent.paused_at)
        text = f"the agent {agent.name} is paused since {since}{_note(agent.pause_note)}"
        yield Obstacle("agent_paused", text)


def _budget(look: ObstacleContext) -> Iterator[Obstacle]:
    if until := look.tenant.over_budget_until:
        text = f"the budget of the project is used up until {look.clock(until)}"
        yield Obstacle("project_budget", text)
    if until := look.agent.over_budget_until:
        text = f"the budget of {look.agent.name} is used up until {look.clock(until)}"
        yield Obstacle("budget", text)


# --- room -----------------------------------------------------------------------------------


def _own_work(look: ObstacleContext) -> Iterator[Obstacle]:
    schedule = look.schedule
    if schedule.overlap == Schedule.Overlap.SKIP and live_states([schedule.pk]).get(schedule.pk):
        text = "its work from before is not finished: another fire would be skipped (overlap: skip)"
        yield Obstacle("already_running", text)


def _slots(look: ObstacleContext) -> Iterator[Obstacle]:
    agent, tenant = look.agent, look.tenant
    busy = Run.objects.filter(slot__isnull=False).order_by("pk")
    # Whoever has lent its place waits for the one who has it.
    holders = list(busy.filter(agent=agent, slot__lt=LENT))
    then = _when_full(look.schedule)
    if agent.scale and len(holders) >= agent.scale:
        slots = "the only slot" if agent.scale == 1 else f"all {agent.scale} slots"
        verb = "is" if agent.scale == 1 else "are"
        text = f"{slots} of {agent.name} {verb} busy{then}: {_named(holders, look)}"
        yield Obstacle("at_capacity", text)
    elif tenant.scale is not None and _under_cap(busy, tenant).count() >= tenant.scale:
        holders = list(_under_cap(busy, tenant))
        text = f"all {tenant.scale} places of the project are taken{then}: {_named(holders, look)}"
        yield Obstacle("project_at_capacity", text)


def _under_cap(busy: "QuerySet[Run]", tenant: Tenant) -> "QuerySet[Run]":
    return busy.filter(tenant=tenant).exclude(project_slot__gte=LENT)


def _when_full(schedule: Schedule) -> str:
    if schedule.overlap == Schedule.Overlap.SKIP:
        return ", a fire would be skipped (overlap: skip)"
    return f", a fire would wait (overlap: {schedule.overlap})"


def _named(runs: list[Run], look: ObstacleContext) -> str:
    named = [f"run {run.pk} ({_since(run, look)})" for run in runs[:RUNS_NAMED]]
    more = len(runs) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _since(run: Run, look: ObstacleContext) -> str:
    asked = f", {run.requested_by}" if run.requested_by else ""
    return f"{run.state} since {look.clock(run.started_at or run.created_at)}{asked}"


def _note(text: str) -> str:
    return f": {text}" if text else ""


_KINDS: tuple[Callable[[ObstacleContext], Iterator[Obstacle]], ...] = (
    _schedule_state,
    _tenant,
    _scheduler,
    _agent,
    _budget,
    _own_work,
    _slots,
    _overdue,
)
