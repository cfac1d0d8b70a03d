"""/v1/agents: list, show, scale, pause, resume, run, stop, tell."""

from django.http import HttpRequest
from ninja import Query, Router
from ninja.responses import Status as Answer
from pydantic import Field

from agents_app.models import Agent
from agents_app.runs import control
from agents_app.signals import messages
from gateway_app.access import TO_OPERATE, TO_READ, Caller, answers, caller_of
from gateway_app.api.agent_shapes import AgentShape, agent_shapes
from gateway_app.api.fields import Note, Payload, Shape, Text, Whole, utc_now
from gateway_app.api.idempotency import IdempotencyKey, refuse_another, stored_key
from gateway_app.api.owned import find_agent
from gateway_app.api.paging import NEXT_CURSOR, PageFilters, page_of
from gateway_app.api.run_shapes import Asked, asked
from gateway_app.api.tracing import trace_of

router = Router(tags=["agents"])


class AgentPage(Shape):
    agents: list[AgentShape]
    next_cursor: str | None = NEXT_CURSOR


class ScaleRequest(Payload):
    scale: Whole = Field(ge=0, le=10_000, description="Slots; 0 disables the agent.")


class PauseRequest(Payload):
    note: Note = Field(default="", description="Why, for the others.")


class Prompt(Payload):
    prompt: Text = Field(default="", description="What it should do.")


class MessageRequest(Payload):
    text: Text = Field(min_length=1, max_length=messages.MAX_MESSAGE_LENGTH)


class Sent(Shape):
    id: int
    agent: str
    work_item_id: int | None = Field(description="null: it is in the inbox of a run.")


class Stopping(Shape):
    stopping: int = Field(description="Runs that were told to end.")


NO_NOTE, NO_PROMPT = PauseRequest(), Prompt()


@router.get("/agents", response=answers(AgentPage), auth=TO_READ)
def list_agents(request: HttpRequest, filters: Query[PageFilters]) -> AgentPage:
    """By name."""
    tenant = caller_of(request).tenant
    page = page_of(tenant.agents.all(), "name", filters)
    return AgentPage(agents=agent_shapes(tenant, page.rows), next_cursor=page.next_cursor)


@router.get("/agents/{name}", response=answers(AgentShape), auth=TO_READ)
def show_agent(request: HttpRequest, name: str) -> AgentShape:
    caller = caller_of(request)
    return _shown(caller, find_agent(caller.tenant, name))


@router.post("/agents/{name}/scale", response=answers(AgentShape), auth=TO_OPERATE)
def scale_agent(request: HttpRequest, name: str, body: ScaleRequest) -> AgentShape:
    """At once; a lower scale lets what runs finish. Holds until the agent's file changes."""
    caller = caller_of(request)
    agent = find_agent(caller.tenant, name)
    control.scale_agent(agent, body.scale, caller.by, utc_now())
    return _shown(caller, agent)


@router.post("/agents/{name}/pause", response=answers(AgentShape), auth=TO_OPERATE)
def pause_agent(request: HttpRequest, name: str, body: PauseRequest = NO_NOTE) -> AgentShape:
    """What time starts is skipped, all else waits."""
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


@router.post("/agents/{name}/run", response=answers(Asked, 202), auth=TO_OPERATE)
def run_agent(
    request: HttpRequest,
    name: str,
    body: Prompt = NO_PROMPT,
    idempotency_key: IdempotencyKey = None,
) -> Answer[Asked]:
    """Starts at once if a slot is free, else it is queued; a `traceparent` header is passed on."""
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
    refuse_another(same=(item.agent_id, item.prompt) == (agent.pk, body.prompt))
    return Answer(202, asked(item, repeated=repeated))


@router.post("/agents/{name}/messages", response=answers(Sent, 202), auth=TO_OPERATE)
def send_message(request: HttpRequest, name: str, body: MessageRequest) -> Answer[Sent]:
    """A run that goes on reads it; else it becomes work at once."""
    caller = caller_of(request)
    agent = find_agent(caller.tenant, name)
    sent = messages.send(agent, body.text, caller.by, utc_now())
    return Answer(202, Sent(id=sent.pk, agent=agent.name, work_item_id=sent.work_item_id))


@router.post("/agents/{name}/stop", response=answers(Stopping), auth=TO_OPERATE)
def stop_agent(request: HttpRequest, name: str) -> Stopping:
    """All its runs; what waits in its queue takes the free slots, unless it is paused first."""
    caller = caller_of(request)
    agent = find_agent(caller.tenant, name)
    return Stopping(stopping=control.stop_agent(agent, caller.by, utc_now()))


def _shown(caller: Caller, agent: Agent) -> AgentShape:
    agent.refresh_from_db()
    (shape,) = agent_shapes(caller.tenant, [agent])
    return shape
