"""/v1/agents: list, show, scale, pause, resume, run, stop, send a message, forget."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, cast

from django.db.models import Count, Max, Min
from django.http import HttpRequest
from ninja import Query, Router
from ninja.responses import Status as Answer
from pydantic import Field

from agents_app.accounts import removal
from agents_app.clock import HOST_ZONE
from agents_app.models import Agent, Run, Schedule, Tenant, WorkItem
from agents_app.reports import agent_note, agent_state, in_project, read_queued_reasons
from agents_app.runs import control
from agents_app.signals import messages
from gateway_app.access import TO_ADMINISTER, TO_OPERATE, TO_READ, Caller, answers, caller_of
from gateway_app.api.fields import (
    Epoch,
    Note,
    Payload,
    Shape,
    Text,
    Whole,
    epoch,
    epoch_or_none,
    utc_now,
)
from gateway_app.api.idempotency import IdempotencyKey, refuse_other_request, stored_key
from gateway_app.api.paging import NEXT_CURSOR, PageFilters, page_of
from gateway_app.api.run_shapes import AcceptedWorkShape, RunShape, accepted_work, run_shape
from gateway_app.api.schedules import DeletedShape
from gateway_app.api.tenant_rows import find_agent, runs_of, schedules_of, work_of
from gateway_app.api.views import trace_of

router = Router(tags=["agents"])


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
    timezone: str = Field(description="Of its schedules, unless they name another one.")
    runtime: str
    timeout_seconds: float
    max_reruns: int
    max_call_depth: int
    retries: int
    on_lost: Literal["fail", "retry"]
    created_at: Epoch
    updated_at: Epoch


class AgentPage(Shape):
    agents: list[AgentShape]
    next_cursor: str | None = NEXT_CURSOR


class ScaleRequest(Payload):
    scale: Whole = Field(ge=0, le=10_000, description="Slots; 0 disables the agent.")


class PauseRequest(Payload):
    note: Note = Field(default="", description="The reason, shown to other users.")


class RunAgentRequest(Payload):
    prompt: Text = Field(default="", description="The task of the run.")


class MessageRequest(Payload):
    text: Text = Field(min_length=1, max_length=messages.MAX_MESSAGE_LENGTH)


class SentMessageShape(Shape):
    id: int
    agent: str
    work_item_id: int | None = Field(description="null: the message is in the inbox of a run.")


class StoppingRunsShape(Shape):
    stopping: int = Field(description="The number of runs that are being stopped.")


NO_NOTE, NO_PROMPT = PauseRequest(), RunAgentRequest()


class AgentFilters(PageFilters):
    all: bool = Field(False, description="Also the agents of earlier project directories.")


@router.get("/agents", response=answers(AgentPage), auth=TO_READ)
def list_agents(request: HttpRequest, filters: Query[AgentFilters]) -> AgentPage:
    """Ordered by name."""
    tenant = caller_of(request).tenant
    agents = tenant.agents.all()
    page = page_of(agents if filters.all else in_project(agents), "name", filters)
    return AgentPage(agents=agent_shapes(tenant, page.rows), next_cursor=page.next_cursor)


@router.get("/agents/{name}", response=answers(AgentShape), auth=TO_READ)
def show_agent(request: HttpRequest, name: str) -> AgentShape:
    caller = caller_of(request)
    return _shown(caller, find_agent(caller.tenant, name))


@router.post("/agents/{name}/scale", response=answers(AgentShape), auth=TO_OPERATE)
def scale_agent(request: HttpRequest, name: str, body: ScaleRequest) -> AgentShape:
    """Takes effect at once; running runs finish. Holds until the file of the agent changes."""
    caller = caller_of(request)
    agent = find_agent(caller.tenant, name)
    control.scale_agent(agent, body.scale, caller.by, utc_now())
    return _shown(caller, agent)


@router.post("/agents/{name}/pause", response=answers(AgentShape), auth=TO_OPERATE)
def pause_agent(request: HttpRequest, name: str, body: PauseRequest = NO_NOTE) -> AgentShape:
    """Scheduled firings are skipped; other work waits in the queue."""
    caller = caller_of(request)
    agent = find_agent(caller.tenant, name)
    control.pause_agent(agent, caller.by, utc_now(), body.note)
    return _shown(caller, agent)


@router.post("/agents/{name}/resume", response=answers(AgentShape), auth=TO_OPERATE)
def resume_agent(request: HttpRequest, name: str) -> AgentShape:
    caller = caller_of(request)
    agent = find_agent(caller.tenant, name)
    control.resume_agent(agent, caller.by, utc_now())
    return _shown(caller, agent)


@router.post("/agents/{name}/run", response=answers(AcceptedWorkShape, 202), auth=TO_OPERATE)
def run_agent(
    request: HttpRequest,
    name: str,
    body: RunAgentRequest = NO_PROMPT,
    idempotency_key: IdempotencyKey = None,
) -> Answer[AcceptedWorkShape]:
    """Starts at once if a slot is free, else the work is queued. Accepts a `traceparent` header."""
    caller, now = caller_of(request), utc_now()
    agent = find_agent(caller.tenant, name)
    item = control.run_agent(
        agent,
        caller.by,
        now,
        prompt=body.prompt,
        idempotency_key=stored_key(idempotency_key),
        trace_id=trace_of(request),
    )
    repeated = item.created_at != now
    refuse_other_request(same=(item.agent_id, item.prompt) == (agent.pk, body.prompt))
    return Answer(202, accepted_work(item, repeated=repeated))


@router.post("/agents/{name}/messages", response=answers(SentMessageShape, 202), auth=TO_OPERATE)
def send_message(request: HttpRequest, name: str, body: MessageRequest) -> Answer[SentMessageShape]:
    """A running run reads the message from its inbox; without one the message starts a run."""
    caller = caller_of(request)
    agent = find_agent(caller.tenant, name)
    sent = messages.send(agent, body.text, caller.by, utc_now())
    return Answer(
        202, SentMessageShape(id=sent.pk, agent=agent.name, work_item_id=sent.work_item_id)
    )


@router.post("/agents/{name}/stop", response=answers(StoppingRunsShape), auth=TO_OPERATE)
def stop_agent(request: HttpRequest, name: str) -> StoppingRunsShape:
    """Stops all runs of the agent. Queued work takes the free slots; pause the agent first."""
    caller = caller_of(request)
    agent = find_agent(caller.tenant, name)
    return StoppingRunsShape(stopping=control.stop_agent(agent, caller.by, utc_now()))


@router.delete("/agents/{name}", response=answers(DeletedShape), auth=TO_ADMINISTER)
def forget_agent(request: HttpRequest, name: str) -> DeletedShape:
    """Deletes an agent whose directory was removed, with its schedules, runs, output and usage."""
    caller = caller_of(request)
    removal.forget_agent(find_agent(caller.tenant, name), caller.by, utc_now())
    return DeletedShape()


def _shown(caller: Caller, agent: Agent) -> AgentShape:
    agent.refresh_from_db()
    (shape,) = agent_shapes(caller.tenant, [agent])
    return shape


# --- agents as JSON --------------------------------------------------------------------------

_SAME = (
    *("name", "description", "scale", "work_queue_size", "pause_note", "definition_error"),
    *("timeout_seconds", "max_reruns", "max_call_depth", "retries", "on_lost"),
)


def agent_shapes(tenant: Tenant, agents: Sequence[Agent]) -> list[AgentShape]:
    """The same number of queries for any number of agents."""
    keys = [agent.pk for agent in agents]
    states = _run_counts(tenant, keys)
    queued = work_of(tenant).filter(agent__in=keys, state=WorkItem.State.QUEUED).order_by()
    depths = dict(queued.values_list("agent_id").annotate(Count("pk")))
    fires = _next_fires(tenant, keys)
    reasons = read_queued_reasons(agents)
    last = _last_runs(tenant, keys)
    return [
        AgentShape(
            **{name: getattr(agent, name) for name in _SAME},
            state=cast("AgentState", agent_state(agent)),
            note=agent_note(agent, reasons.get(agent.pk)),
            running=states.get((agent.pk, Run.State.RUNNING), 0),
            pending=states.get((agent.pk, Run.State.PENDING), 0),
            queue_depth=depths.get(agent.pk, 0),
            next_fire_at=epoch_or_none(fires.get(agent.pk) if agent.enabled else None),
            last_run=last.get(agent.pk),
            paused_at=epoch_or_none(agent.paused_at),
            removed_at=epoch_or_none(agent.removed_at),
            timezone=agent.timezone or HOST_ZONE,
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
