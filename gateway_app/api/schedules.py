"""/v1/schedules: list, show, preview, create, change, delete, and the runs of a schedule."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router
from ninja.responses import Status as Answer
from pydantic import Field

from agents_app.accounts import removal
from agents_app.clock import HOST_ZONE
from agents_app.database import in_transaction
from agents_app.errors import NotFound, Refused, TriggerParseError
from agents_app.models import Agent, Schedule, Tenant
from agents_app.reports import in_project
from agents_app.schedules import create_once, edit
from agents_app.triggers.preview import preview_fires
from gateway_app.access import TO_OPERATE, TO_READ, Caller, Invalid, answers, caller_of
from gateway_app.api.fields import Shape, Text, Whole, moment, utc_now
from gateway_app.api.idempotency import IdempotencyKey, refuse_other_request, stored_key
from gateway_app.api.paging import NEXT_CURSOR, PageFilters, page_by_time, page_of
from gateway_app.api.run_shapes import AcceptedWorkShape, accepted_work, run_shape
from gateway_app.api.runs import RunPage
from gateway_app.api.schedule_shapes import (
    FiresShape,
    NewSchedule,
    Phrase,
    Policies,
    ScheduleChanges,
    ScheduleShape,
    Status,
    fires_shape,
    schedule_shape,
)
from gateway_app.api.tenant_rows import find_agent, find_schedule, runs_of, schedules_of
from gateway_app.api.waiting import wait_until_ended

router = Router(tags=["schedules"])


class SchedulePage(Shape):
    schedules: list[ScheduleShape]
    next_cursor: str | None = NEXT_CURSOR


class ScheduleFilters(PageFilters):
    order: Literal["changed", "created"] = Field(
        "changed", description="A schedule that changes moves, but not in the order of creation."
    )
    status: Status | None = None
    agent: str | None = None
    kind: Literal["once", "recurring"] | None = None
    name: Text | None = Field(None, max_length=100)
    all: bool = Field(
        False,
        description="Also the schedules of agents of earlier project directories. Has no effect "
        "with `agent`.",
    )


class RunsFilters(PageFilters):
    limit: int = Field(100, ge=1, le=100)


@router.get("/schedules", response=answers(SchedulePage), auth=TO_READ)
def list_schedules(request: HttpRequest, filters: Query[ScheduleFilters]) -> SchedulePage:
    """Newest first, by the last change or by creation."""
    tenant = caller_of(request).tenant
    found = tenant.schedules.all()
    if filters.status is not None:
        found = found.filter(state=filters.status)
    if filters.agent is not None:
        found = found.filter(agent=find_agent(tenant, filters.agent))
    elif not filters.all:
        found = in_project(found, "agent")
    if filters.name is not None:
        found = found.filter(name=filters.name)
    if filters.kind is not None:
        found = found.filter(one_shot=filters.kind == "once")
    if filters.order == "changed":
        page = page_by_time(found, "updated_at", filters)
    else:
        page = page_of(found, "-pk", filters)
    # Annotated after the limit: a database computes the annotations of all rows that it sorts.
    shown = schedules_of(tenant).in_bulk([schedule.pk for schedule in page.rows])
    shapes = [schedule_shape(shown[row.pk]) for row in page.rows if row.pk in shown]
    return SchedulePage(schedules=shapes, next_cursor=page.next_cursor)


@router.get("/schedules/{int:schedule_id}", response=answers(ScheduleShape), auth=TO_READ)
def show_schedule(request: HttpRequest, schedule_id: int) -> ScheduleShape:
    return schedule_shape(find_schedule(caller_of(request).tenant, schedule_id))


@router.get("/schedules/{int:schedule_id}/runs", response=answers(RunPage), auth=TO_READ)
def list_runs_of_schedule(
    request: HttpRequest, schedule_id: int, filters: Query[RunsFilters]
) -> RunPage:
    """Newest first."""
    tenant = caller_of(request).tenant
    schedule = find_schedule(tenant, schedule_id)
    page = page_of(runs_of(tenant).filter(schedule=schedule), "-pk", filters)
    return RunPage(runs=[run_shape(run) for run in page.rows], next_cursor=page.next_cursor)


# --- preview --------------------------------------------------------------------------------


class PreviewRequest(Policies):
    """The body of `POST /v1/schedules`; only `schedule` is required."""

    schedule: Phrase
    message: Text | None = None
    agent: Text | None = Field(default=None, description="Its time zone is the default.")
    name: Annotated[Text, Field(max_length=100)] | None = None
    count: Whole = Field(default=5, ge=1, le=50)


class PreviewShape(FiresShape):
    schedule: str
    name: str = Field(description="Of the schedule that would be created.")
    expression: str
    timezone: str


@router.post("/schedules/preview", response=answers(PreviewShape), auth=TO_READ)
def preview_schedule(request: HttpRequest, body: PreviewRequest) -> PreviewShape:
    """When the schedule would fire; nothing is saved. Refuses what `POST /v1/schedules` refuses."""
    tenant, now = caller_of(request).tenant, utc_now()
    agent = _agent(tenant, body.agent) if body.agent else _default_agent(tenant)
    agent, policies = agent or Agent(tenant=tenant), body.given_policies()
    rules: dict[str, Any] = {name: policies[name] for name in _RULES if name in policies}
    zone = body.timezone or agent.timezone or HOST_ZONE
    seen = preview_fires(body.schedule, zone, now, count=body.count, **rules)
    if not seen.expression:
        reason = seen.error or seen.note
        raise TriggerParseError(reason, text=body.schedule, accepted=seen.accepted)
    draft = edit.draft_schedule(agent, _draft(body), now)
    return PreviewShape(
        schedule=body.schedule,
        name=draft.name,
        expression=seen.expression,
        timezone=seen.timezone,
        **dict(fires_shape(seen)),
    )


_RULES = ("gap", "overlap_hour", "anchor")


# --- changes ---------------------------------------------------------------------------------

S = Schedule.State
DEFAULT_AGENT_NAME = "index"
_COLUMNS = {"schedule": "text", "message": "prompt", "name": "name"}


class DeletedShape(Shape):
    deleted: Literal[True] = True


@router.post(
    "/schedules", response={**answers(ScheduleShape, 201), 200: ScheduleShape}, auth=TO_OPERATE
)
def create_schedule(
    request: HttpRequest, body: NewSchedule, idempotency_key: IdempotencyKey = None
) -> Answer[ScheduleShape]:
    """200 instead of 201 if the Idempotency-Key has created the schedule before."""
    caller = caller_of(request)
    agent = _agent(caller.tenant, body.agent)
    key = stored_key(idempotency_key)
    made, new = create_once(agent, _draft(body), key, caller.by, utc_now())
    refuse_other_request(same=(made.agent_id, made.text, made.prompt) == (agent.pk, *_input(body)))
    return Answer(201 if new else 200, _shown(caller, made.pk))


@router.patch("/schedules/{int:schedule_id}", response=answers(ScheduleShape), auth=TO_OPERATE)
def change_schedule(request: HttpRequest, schedule_id: int, body: ScheduleChanges) -> ScheduleShape:
    """All changes or none; counts and history stay. A resumed schedule fires at its next time.

    A schedule that a file defines can be paused and resumed; other changes are refused.
    """
    caller, now = caller_of(request), utc_now()
    schedule = find_schedule(caller.tenant, schedule_id)
    if body.status != "paused" and (body.pause_note or body.pause_until is not None):
        raise Invalid("pause_note and pause_until belong to status=paused")
    edits = _edits(caller, schedule, body)

    def change() -> None:
        if edits:
            edit.edit(schedule, edits, caller.by, now)
        if body.status is not None:
            _MOVES[body.status](schedule, body, caller.by, now)

    in_transaction(change)
    return _shown(caller, schedule_id)


@router.post(
    "/schedules/{int:schedule_id}/retry", response=answers(AcceptedWorkShape, 202), auth=TO_OPERATE
)
def retry_schedule(request: HttpRequest, schedule_id: int) -> Answer[AcceptedWorkShape]:
    """Queues the last failed work again; a failed one-time schedule becomes active."""
    caller = caller_of(request)
    schedule = find_schedule(caller.tenant, schedule_id)
    return Answer(202, accepted_work(edit.retry(schedule, caller.by, utc_now())))


@router.delete("/schedules/{int:schedule_id}", response=answers(DeletedShape), auth=TO_OPERATE)
def delete_schedule(request: HttpRequest, schedule_id: int) -> DeletedShape:
    """Deletes the schedule with its runs and their output; running runs are stopped first.

    A schedule that a file defines is refused: remove it in the file.
    """
    caller, now = caller_of(request), utc_now()
    schedule = find_schedule(caller.tenant, schedule_id)
    wait_until_ended(removal.close_schedule(schedule, caller.by, now))
    removal.remove_schedule(schedule, caller.by, now)
    return DeletedShape()


# --- its parts ------------------------------------------------------------------------------


def _agent(tenant: Tenant, name: str | None) -> Agent:
    if name is None:
        default = _default_agent(tenant)
        if default is None:
            raise Invalid("agent: required if there are several agents (GET /v1/agents lists them)")
        return default
    try:
        agent = find_agent(tenant, name)
    except NotFound:
        raise NotFound(f"agent '{name[:80]}' not found in tenant catalog") from None
    if agent.removed_at is not None:
        raise Refused(f"the directory of {agent.name} is missing: restore it first")
    return agent


def _default_agent(tenant: Tenant) -> Agent | None:
    """The agent `index`, or the only agent."""
    present = tenant.agents.filter(removed_at__isnull=True)
    index = present.filter(name=DEFAULT_AGENT_NAME).first()
    agents = [index] if index else list(present[:2])
    return agents[0] if len(agents) == 1 else None


def _draft(body: NewSchedule | PreviewRequest) -> edit.Draft:
    return edit.Draft(
        text=body.schedule,
        prompt=body.message or "",
        name=(body.name or "").strip(),
        **body.given_policies(),
    )


def _input(body: NewSchedule) -> tuple[str, str]:
    return body.schedule, body.message


def _edits(caller: Caller, schedule: Schedule, body: ScheduleChanges) -> dict[str, Any]:
    edits = body.given_policies()
    for field, column in _COLUMNS.items():
        if (value := getattr(body, field)) is not None:
            edits[column] = value
    if body.agent is not None:
        edits["agent"] = _agent(caller.tenant, body.agent)
    if edits.keys() & {"agent", "name"}:
        agent, name = edits.get("agent", schedule.agent), edits.get("name", schedule.name)
        if agent.schedules.filter(name=name).exclude(pk=schedule.pk).exists():
            raise Refused(f"{agent.name} has a schedule {name!r} already: choose another name")
    return edits


def _shown(caller: Caller, key: int) -> ScheduleShape:
    return schedule_shape(find_schedule(caller.tenant, key))


# --- changes of the status ------------------------------------------------------------------


def _pause(schedule: Schedule, body: ScheduleChanges, by: str, now: datetime) -> None:
    until = None if body.pause_until is None else moment(body.pause_until)
    changed = edit.pause(schedule, by, now, body.pause_note or "", until)
    if not changed:
        _refuse_unless(S.PAUSED, schedule, "only an active schedule can be paused")


def _resume(schedule: Schedule, body: ScheduleChanges, by: str, now: datetime) -> None:
    if not edit.resume(schedule, by, now, at_once=body.at_once):
        _refuse_unless(S.ACTIVE, schedule, "only a paused schedule can be resumed")


def _cancel(schedule: Schedule, _body: ScheduleChanges, by: str, now: datetime) -> None:
    if schedule.state != S.CANCELED:
        edit.cancel(schedule, by, now)


def _end(schedule: Schedule, body: ScheduleChanges, _by: str, _now: datetime) -> None:
    _refuse_unless(
        str(body.status), schedule, "only Drover sets this status; cancel the schedule instead"
    )


def _refuse_unless(state: str, schedule: Schedule, why: str) -> None:
    schedule.refresh_from_db(fields=["state"])
    if schedule.state != state:
        raise Refused(f"the schedule is {schedule.state}: {why}")


_Move = Callable[[Schedule, ScheduleChanges, str, datetime], None]
_MOVES: Mapping[str, _Move] = {
    S.ACTIVE: _resume,
    S.PAUSED: _pause,
    S.CANCELED: _cancel,
    S.COMPLETED: _end,
    S.FAILED: _end,
}
