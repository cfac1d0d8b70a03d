"""Agents as the API shows them, with what they are doing now."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, cast

from django.db.models import Count, Max, Min

from agents_app.models import Agent, Run, Schedule, Tenant, WorkItem
from agents_app.reports import note_of, state_of
from gateway_app.api.fields import Epoch, Shape, epoch, epoch_or_none
from gateway_app.api.owned import runs_of, schedules_of, work_of
from gateway_app.api.run_shapes import RunShape, run_shape

AgentState = Literal["enabled", "paused", "disabled", "invalid"]


class AgentShape(Shape):
    name: str
    description: str
    state: AgentState
    note: str
    scale: int
    running: int
    pending: int
    queue_depth: int
    work_queue_size: int
    next_fire_at: Epoch | None
    last_run: RunShape | None
    paused_at: Epoch | None
    pause_note: str
    removed_at: Epoch | None
    definition_error: str
    runtime: str
    timeout_seconds: float
    max_reruns: int
    max_call_depth: int
    retries: int
    on_lost: Literal["fail", "retry"]
    created_at: Epoch
    updated_at: Epoch


_SAME = (
    *("name", "description", "scale", "work_queue_size", "pause_note", "definition_error"),
    *("timeout_seconds", "max_reruns", "max_call_depth", "retries", "on_lost"),
)


def agent_shapes(tenant: Tenant, agents: Sequence[Agent]) -> list[AgentShape]:
    """A few queries, whatever their number."""
    keys = [agent.pk for agent in agents]
    states = _run_counts(tenant, keys)
    queued = work_of(tenant).filter(agent__in=keys, state=WorkItem.State.QUEUED).order_by()
    depths = dict(queued.values_list("agent_id").annotate(Count("pk")))
    fires = _next_fires(tenant, keys)
    last = _last_runs(tenant, keys)
    return [
        AgentShape(
            **{name: getattr(agent, name) for name in _SAME},
            state=cast("AgentState", state_of(agent)),
            note=note_of(agent),
            running=states.get((agent.pk, Run.State.RUNNING), 0),
            pending=states.get((agent.pk, Run.State.PENDING), 0),
            queue_depth=depths.get(agent.pk, 0),
            next_fire_at=epoch_or_none(fires.get(agent.pk) if agent.enabled else None),
            last_run=last.get(agent.pk),
            paused_at=epoch_or_none(agent.paused_at),
            removed_at=epoch_or_none(agent.removed_at),
            runtime=str(agent.runtime.get("type", "process")),
            created_at=epoch(agent.created_at),
            updated_at=epoch(agent.updated_at),
        )
        for agent in agents
    ]


def _run_counts(tenant: Tenant, keys: list[int]) -> dict[tuple[int, str], int]:
    unfinished = runs_of(tenant).filter(agent__in=keys, slot__isnull=False).order_by()
    counted = unfinished.values_list("agent_id", "state").annotate(Count("pk"))
    return {(agent, state): count for agent, state, count in counted}


def _next_fires(tenant: Tenant, keys: list[int]) -> dict[int, datetime]:
    armed = schedules_of(tenant).filter(agent__in=keys, state=Schedule.State.ACTIVE).order_by()
    armed = armed.filter(next_fire_at__isnull=False)
    return dict(armed.values_list("agent_id").annotate(Min("next_fire_at")))


def _last_runs(tenant: Tenant, keys: list[int]) -> dict[int, RunShape]:
    newest = runs_of(tenant).filter(agent__in=keys).order_by().values_list("agent_id")
    last = [key for _, key in newest.annotate(Max("pk"))]
    return {run.agent_id: run_shape(run) for run in runs_of(tenant).filter(pk__in=last)}
