"""/v1/schedules, the reading half: list, show, their runs, and when a phrase would fire."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from agents_app.clock import HOST_ZONE
from agents_app.errors import TriggerParseError
from agents_app.triggers.preview import ClockChange, Fire, preview_fires
from gateway_app.access import TO_READ, answers, caller_of
from gateway_app.api.fields import Epoch, Payload, Shape, Text, Whole, epoch, utc_now
from gateway_app.api.owned import find_agent, find_schedule, runs_of, schedules_of
from gateway_app.api.paging import NEXT_CURSOR, PageFilters, page_of
from gateway_app.api.run_shapes import run_shape
from gateway_app.api.runs import RunPage
from gateway_app.api.schedule_shapes import Phrase, ScheduleShape, Status, schedule_shape

router = Router(tags=["schedules"])


class SchedulePage(Shape):
    schedules: list[ScheduleShape]
    next_cursor: str | None = NEXT_CURSOR


class ScheduleFilters(PageFilters):
    status: Status | None = None
    agent: str | None = None
    kind: Literal["once", "recurring"] | None = None


class RunsFilters(PageFilters):
    limit: int = Field(100, ge=1, le=100)


@router.get("/schedules", response=answers(SchedulePage), auth=TO_READ)
def list_schedules(request: HttpRequest, filters: Query[ScheduleFilters]) -> SchedulePage:
    """The newest first."""
    tenant = caller_of(request).tenant
    found = schedules_of(tenant)
    if filters.status is not None:
        found = found.filter(state=filters.status)
    if filters.agent is not None:
        found = found.filter(agent=find_agent(tenant, filters.agent))
    if filters.kind is not None:
        found = found.filter(one_shot=filters.kind == "once")
    page = page_of(found, "-pk", filters)
    shapes = [schedule_shape(schedule) for schedule in page.rows]
    return SchedulePage(schedules=shapes, next_cursor=page.next_cursor)


@router.get("/schedules/{int:schedule_id}", response=answers(ScheduleShape), auth=TO_READ)
def show_schedule(request: HttpRequest, schedule_id: int) -> ScheduleShape:
    return schedule_shape(find_schedule(caller_of(request).tenant, schedule_id))


@router.get("/schedules/{int:schedule_id}/runs", response=answers(RunPage), auth=TO_READ)
def list_runs_of_schedule(
    request: HttpRequest, schedule_id: int, filters: Query[RunsFilters]
) -> RunPage:
    """The newest first."""
    tenant = caller_of(request).tenant
    schedule = find_schedule(tenant, schedule_id)
    page = page_of(runs_of(tenant).filter(schedule=schedule), "-pk", filters)
    return RunPage(runs=[run_shape(run) for run in page.rows], next_cursor=page.next_cursor)


# --- before it is saved ---------------------------------------------------------------------


class Previewed(Payload):
    schedule: Phrase
    timezone: Annotated[Text, Field(max_length=64)] | None = None
    gap: Literal["shift", "next_valid", "skip"] = "shift"
    overlap_hour: Literal["first", "second", "both"] = "first"
    anchor: Literal["completion", "start", ""] = ""
    count: Whole = Field(default=5, ge=1, le=50)


class FireShape(Shape):
    at: Epoch
    local: str
    utc: str
    remark: str


class ClockChangeShape(Shape):
    at: Epoch
    text: str
    note: str
    fires: list[FireShape]


class PreviewShape(Shape):
    schedule: str
    expression: str
    timezone: str
    note: str
    fires: list[FireShape]
    clock_change: ClockChangeShape | None = Field(
        description="What the next clock change of the zone does to the fires."
    )


@router.post("/schedules/preview", response=answers(PreviewShape), auth=TO_READ)
def preview_schedule(request: HttpRequest, body: Previewed) -> PreviewShape:  # noqa: ARG001
    """When it would fire; nothing is saved."""
    rules: dict[str, Any] = {name: getattr(body, name) for name in _RULES}
    zone = body.timezone or HOST_ZONE
    seen = preview_fires(body.schedule, zone, utc_now(), count=body.count, **rules)
    if not seen.expression:
        reason = seen.error or seen.note
        raise TriggerParseError(reason, text=body.schedule, accepted=seen.accepted)
    return PreviewShape(
        schedule=body.schedule,
        expression=seen.expression,
        timezone=seen.timezone,
        note=seen.note,
        fires=_fires(seen.fires),
        clock_change=_change(seen.change) if seen.change else None,
    )


_RULES = ("gap", "overlap_hour", "anchor")


def _change(change: ClockChange) -> ClockChangeShape:
    return ClockChangeShape(
        at=epoch(change.at), text=change.text, note=change.note, fires=_fires(change.fires)
    )


def _fires(fires: Iterable[Fire]) -> list[FireShape]:
    return [
        FireShape(at=epoch(fire.at), local=fire.local, utc=fire.utc, remark=fire.remark)
        for fire in fires
    ]
