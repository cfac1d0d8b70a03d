"""/v1/schedules, the acting half: create, change, delete."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from ninja.responses import Status as Answer

from agents_app.accounts import removal
from agents_app.database import in_transaction
from agents_app.errors import NotFound, Refused
from agents_app.models import Agent, Schedule, Tenant
from agents_app.schedules import create_once, edit
from gateway_app.access import TO_OPERATE, Caller, Invalid, answers, caller_of
from gateway_app.api.ending import wait_until_ended
from gateway_app.api.fields import Shape, moment, utc_now
from gateway_app.api.idempotency import IdempotencyKey, refuse_another, stored_key
from gateway_app.api.owned import find_agent, find_schedule
from gateway_app.api.schedule_shapes import (
    NewSchedule,
    ScheduleChanges,
    ScheduleShape,
    schedule_shape,
)
from gateway_app.api.schedules import router

S = Schedule.State
_COLUMNS = {"schedule": "text", "message": "prompt", "name": "name"}


class Deleted(Shape):
    deleted: Literal[True] = True


@router.post(
    "/schedules", response={**answers(ScheduleShape, 201), 200: ScheduleShape}, auth=TO_OPERATE
)
def create_schedule(
    request: HttpRequest, body: NewSchedule, idempotency_key: IdempotencyKey = None
) -> Answer[ScheduleShape]:
    """200 instead of 201 if the same Idempotency-Key has made it before."""
    caller = caller_of(request)
    agent = _agent(caller.tenant, body.agent)
    draft = edit.Draft(
        text=body.schedule,
        prompt=body.message,
        name=(body.name or "").strip(),
        **body.given_policies(),
    )
    key = stored_key(idempotency_key)
    made, new = create_once(agent, draft, key, caller.by, utc_now())
    refuse_another(same=(made.agent_id, made.text, made.prompt) == (agent.pk, *_said(body)))
    return Answer(201 if new else 200, _shown(caller, made.pk))


@router.patch("/schedules/{int:schedule_id}", response=answers(ScheduleShape), auth=TO_OPERATE)
def change_schedule(request: HttpRequest, schedule_id: int, body: ScheduleChanges) -> ScheduleShape:
    """All of it or nothing; counts and history stay. A resumed one goes on with its next fire."""
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


@router.delete("/schedules/{int:schedule_id}", response=answers(Deleted), auth=TO_OPERATE)
def delete_schedule(request: HttpRequest, schedule_id: int) -> Deleted:
    """With its runs and their output; one that still runs is ended first."""
    caller, now = caller_of(request), utc_now()
    schedule = find_schedule(caller.tenant, schedule_id)
    wait_until_ended(removal.close_schedule(schedule, caller.by, now))
    removal.remove_schedule(schedule, caller.by, now)
    return Deleted()


# --- the parts ------------------------------------------------------------------------------


def _agent(tenant: Tenant, name: str | None) -> Agent:
    if name is None:
        agents = list(tenant.agents.filter(removed_at__isnull=True)[:2])
        if len(agents) != 1:
            raise Invalid("agent: say which one (GET /v1/agents lists them)")
        return agents[0]
    try:
        agent = find_agent(tenant, name)
    except NotFound:
        raise NotFound(f"agent '{name[:80]}' not found in tenant catalog") from None
    if agent.removed_at is not None:
        raise Refused(f"the directory of {agent.name} is missing: bring it back first")
    return agent


def _said(body: NewSchedule) -> tuple[str, str]:
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


# --- from a status to a verb ----------------------------------------------------------------


def _pause(schedule: Schedule, body: ScheduleChanges, by: str, now: datetime) -> None:
    until = None if body.pause_until is None else moment(body.pause_until)
    changed = edit.pause(schedule, by, now, body.pause_note or "", until)
    if not changed:
        _refuse_unless(S.PAUSED, schedule, "only an active one can be paused")


def _resume(schedule: Schedule, body: ScheduleChanges, by: str, now: datetime) -> None:
    if not edit.resume(schedule, by, now, at_once=body.at_once):
        _refuse_unless(S.ACTIVE, schedule, "only a paused one can be resumed")


def _cancel(schedule: Schedule, _body: ScheduleChanges, by: str, now: datetime) -> None:
    if schedule.state != S.CANCELED:
        edit.cancel(schedule, by, now)


def _end(schedule: Schedule, body: ScheduleChanges, _by: str, _now: datetime) -> None:
    _refuse_unless(str(body.status), schedule, "only its firing ends it so; cancel it instead")


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
