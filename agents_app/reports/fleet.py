"""The state of scheduler, agents and workers as values; reads only."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import (
    Case,
    CharField,
    Count,
    Min,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Concat

from agents_app.conf import CONF
from agents_app.console import AgentStatus, Fleet, LastRun, SchedulerStatus, WorkerStatus
from agents_app.models import (
    DEFAULT_TENANT,
    Agent,
    Run,
    Schedule,
    Tenant,
    Worker,
    WorkItem,
)
from agents_app.runs import blocked_because, read_scheduler, requeued_because

M = TypeVar("M", bound=Model)


def read_fleet(tenant_name: str, now: datetime, *, all_projects: bool = False) -> Fleet:
    """The fleet of a tenant; a tenant that does not exist yet has an empty one."""
    agents = read_agents(tenant_name, all_projects=all_projects)
    return Fleet(read_scheduler_status(tenant_name, agents, now), agents, read_workers(now))


def read_scheduler_status(
    tenant_name: str, agents: list[AgentStatus], now: datetime
) -> SchedulerStatus:
    row = read_scheduler(now)
    tenant = Tenant.objects.filter(name=tenant_name).first() or Tenant()
    return SchedulerStatus(
        state=str(row.state),
        started_at=row.started_at,
        check_count=row.check_count,
        trigger_count=row.trigger_count,
        last_check_at=row.last_check_at,
        paused=tenant.paused_at is not None,
        paused_at=tenant.paused_at,
        pause_note=tenant.pause_note,
        running=(running := sum(agent.running for agent in agents)),
        pending=sum(agent.pending for agent in agents),
        # The name of version 0.1.0, which scripts read.
        running_runs=running,
        queue_depth=sum(agent.queue_depth for agent in agents),
    )


# --- agents ---------------------------------------------------------------------------------


def in_project(rows: QuerySet[M], agent: str = "") -> QuerySet[M]:
    """Without the agents of an earlier project directory, which are listed only on request.

    For rows of agents, or of a table whose field `agent` names the agent of each row."""
    at = f"{agent}__" if agent else ""
    here = Case(
        When(Q(**{f"{at}tenant__name": DEFAULT_TENANT}), then=Value(f"{CONF.project}/")),
        default=Concat(f"{at}tenant__project", Value("/")),
        output_field=CharField(),
    )
    elsewhere = ~Q(**{f"{at}directory__startswith": here})
    known = ~Q(**{f"{at}directory": ""})
    gone = Q(**{f"{at}removed_at__isnull": False})
    return rows.exclude(gone & elsewhere & known)


def read_agents(tenant_name: str, *, all_projects: bool = False) -> list[AgentStatus]:
    newest = Run.objects.filter(agent=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    own = Agent.objects.filter(tenant__name=tenant_name).select_related("tenant")
    agents = (own if all_projects else in_project(own)).annotate(
        last_run_id=Subquery(newest), queued_reason=oldest_queued_reason()
    )
    unfinished = Run.objects.filter(slot__isnull=False)
    running = _count(unfinished.filter(state=Run.State.RUNNING), "agent_id")
    pending = _count(unfinished.filter(state=Run.State.PENDING), "agent_id")
    queued = _count(WorkItem.objects.filter(state=WorkItem.State.QUEUED), "agent_id")
    last = Run.objects.in_bulk([agent.last_run_id for agent in agents])
    fires = _next_fires(tenant_name)
    return [
        AgentStatus(
            name=agent.name,
            state=agent_state(agent),
            note=agent_note(agent, agent.queued_reason),
            scale=agent.scale,
            running=running.get(agent.pk, 0),
            pending=pending.get(agent.pk, 0),
            queue_depth=queued.get(agent.pk, 0),
            work_queue_size=agent.work_queue_size,
            queue_size=agent.work_queue_size,
            last_run=last_run(last[agent.last_run_id]) if agent.last_run_id in last else None,
            next_fire_at=fires.get(agent.pk) if agent.enabled else None,
        )
        for agent in agents.order_by("name")
    ]


def agent_state(agent: Agent) -> str:
    """`invalid` has priority, because the file has to be fixed first."""
    if agent.definition_error:
        return "invalid"
    if not agent.enabled:
        return "disabled"
    return "paused" if agent.paused_at else "enabled"


def agent_note(agent: Agent, queued_reason: str | None) -> str:
    """The error of its file, or why its work waits: a pause, a used budget, or the error that put
    its oldest work item back into the queue, such as Docker that is not reachable.

    Every list, page and response has this text; the agent must have been read with its tenant."""
    if agent.definition_error:
        return agent.definition_error.splitlines()[0]
    return blocked_because(agent, agent.tenant) or requeued_because(queued_reason or "")


def oldest_queued_reason() -> Subquery:
    """An annotation of agents: the reason of the oldest queued work item that has one."""
    queued = WorkItem.objects.filter(agent=OuterRef("pk"), state=WorkItem.State.QUEUED)
    return Subquery(queued.exclude(reason="").order_by("pk").values("reason")[:1])


def read_queued_reasons(agents: Iterable[Agent]) -> dict[int, str]:
    """The same reason by the key of each agent that has one."""
    keys = [agent.pk for agent in agents]
    found = Agent.objects.filter(pk__in=keys).annotate(queued_reason=oldest_queued_reason())
    return dict(found.order_by().values_list("pk", "queued_reason"))


def last_run(run: Run) -> LastRun:
    times = (run.started_at, run.finished_at)
    return LastRun(run.pk, str(run.state), *times, run.exit_code, run.error)


def _count(rows: QuerySet[Any], key: str) -> dict[int, int]:
    # order_by() without names: the default order of a model would become part of the grouping.
    return dict(rows.order_by().values_list(key).annotate(Count("pk")))


def _next_fires(tenant_name: str) -> dict[int, datetime]:
    active = Schedule.objects.filter(tenant__name=tenant_name, state=Schedule.State.ACTIVE)
    armed = active.filter(next_fire_at__isnull=False)
    return dict(armed.order_by().values_list("agent_id").annotate(Min("next_fire_at")))


# --- workers --------------------------------------------------------------------------------


def read_workers(now: datetime) -> list[WorkerStatus]:
    running = _count(Run.objects.filter(state=Run.State.RUNNING, slot__isnull=False), "worker_id")
    return [
        WorkerStatus(
            name=worker.name,
            host=worker.host,
            pid=worker.pid,
            state=str(worker.state) if worker.lease_until > now else "silent",
            running=running.get(worker.pk, 0),
            concurrency=worker.concurrency,
            started_at=worker.started_at,
            lease_until=worker.lease_until,
        )
        for worker in Worker.objects.filter(ended_at__isnull=True).order_by("host", "name")
    ]
