"""/v1/schedules/{id}/fires and /why: the next fires, and why a schedule did or did not run."""

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from agents_app.console import HistoryEntry, ScheduledWork
from agents_app.schedules import preview_of
from agents_app.schedules.why import explain, explain_past
from gateway_app.access import TO_READ, answers, caller_of
from gateway_app.api.fields import (
    Epoch,
    Filters,
    SecondsOrTime,
    Shape,
    epoch,
    epoch_or_none,
    moment,
    utc_now,
)
from gateway_app.api.firings import Outcome
from gateway_app.api.run_shapes import RunState, WorkState
from gateway_app.api.schedule_shapes import FiresShape, Status, fires_shape
from gateway_app.api.tenant_rows import find_schedule

router = Router(tags=["schedules"])


class ScheduledWorkShape(Shape):
    work_item_id: int
    asked_at: Epoch
    asked_by: str
    state: WorkState
    reason: str
    position: int | None = Field(description="In the queue of its agent, from 1.")
    run_id: int | None = Field(description="The last run of the work.")
    run_state: RunState | None
    started_at: Epoch | None
    finished_at: Epoch | None
    exit_code: int | None
    error: str
    text: str = Field(description="The state of the work as a sentence.")


class HistoryEntryShape(Shape):
    due_at: Epoch
    outcome: Outcome
    reason: str = Field(description="Of a skipped firing.")
    late_seconds: float
    outcome_text: str = Field(description="The outcome and its reason as a sentence.")
    work_text: str = Field(description="The state of its work as a sentence.")
    work: ScheduledWorkShape | None


class ObstacleShape(Shape):
    code: str
    text: str


class CountersShape(Shape):
    fired: int
    skipped: int
    missed: int
    late: int
    failures: int = Field(description="In a row.")


class ExplanationShape(Shape):
    id: int
    agent: str
    name: str
    status: Status
    timezone: str
    text: str = Field(description="The state in one sentence.")
    obstacles: list[ObstacleShape]
    next_fire_at: Epoch | None
    counters: CountersShape
    firings: list[HistoryEntryShape] = Field(description="Latest due time first.")
    retried_work: list[ScheduledWorkShape] = Field(description="Work that retries queued.")


class PastExplanationShape(Shape):
    asked_at: Epoch
    text: str
    firing: HistoryEntryShape | None = Field(description="The firing within a minute of the time.")
    before: HistoryEntryShape | None
    after: HistoryEntryShape | None
    due_at: Epoch | None


class FiresFilters(Filters):
    count: int = Field(5, ge=1, le=1000)


class WhyFilters(Filters):
    limit: int = Field(10, ge=1, le=1000, description="The number of firings.")


class PastFilters(Filters):
    at: SecondsOrTime | None = Field(None, description="The present time by default.")


@router.get("/schedules/{int:schedule_id}/fires", response=answers(FiresShape), auth=TO_READ)
def list_next_fires(
    request: HttpRequest, schedule_id: int, filters: Query[FiresFilters]
) -> FiresShape:
    """The next fires; of a paused schedule as if it were resumed now."""
    schedule = find_schedule(caller_of(request).tenant, schedule_id)
    return fires_shape(preview_of(schedule, utc_now(), filters.count))


@router.get("/schedules/{int:schedule_id}/why", response=answers(ExplanationShape), auth=TO_READ)
def explain_schedule(
    request: HttpRequest, schedule_id: int, filters: Query[WhyFilters]
) -> ExplanationShape:
    """What keeps the schedule from starting runs now, and its latest firings with their work."""
    schedule = find_schedule(caller_of(request).tenant, schedule_id)
    seen = explain(schedule, utc_now(), filters.limit)
    names = ("id", "agent", "name", "timezone", "text")
    same: Any = {name: getattr(seen, name) for name in names} | {"status": schedule.state}
    counted: Any = {name: getattr(seen.counters, name) for name in CountersShape.model_fields}
    return ExplanationShape(
        **same,
        obstacles=[ObstacleShape(code=each.code, text=each.text) for each in seen.obstacles],
        next_fire_at=epoch_or_none(seen.next_fire_at),
        counters=CountersShape(**counted),
        firings=[_entry(entry) for entry in seen.firings],
        retried_work=[_work(work) for work in seen.retried_work],
    )


@router.get(
    "/schedules/{int:schedule_id}/why/past", response=answers(PastExplanationShape), auth=TO_READ
)
def explain_schedule_at(
    request: HttpRequest, schedule_id: int, filters: Query[PastFilters]
) -> PastExplanationShape:
    """What the schedule did at a time in the past, and the firings around it."""
    schedule = find_schedule(caller_of(request).tenant, schedule_id)
    now = utc_now()
    past = explain_past(schedule, now if filters.at is None else moment(filters.at), now)
    sides = {name: getattr(past, name) for name in ("firing", "before", "after")}
    return PastExplanationShape(
        asked_at=epoch(past.asked_at),
        text=past.text,
        due_at=epoch_or_none(past.due_at),
        **{name: _entry(entry) if entry else None for name, entry in sides.items()},
    )


def _entry(entry: HistoryEntry) -> HistoryEntryShape:
    same = ("outcome", "reason", "late_seconds", "outcome_text", "work_text")
    values: Any = {name: getattr(entry, name) for name in same}
    work = _work(entry.work) if entry.work else None
    return HistoryEntryShape(**values, due_at=epoch(entry.due_at), work=work)


def _work(work: ScheduledWork) -> ScheduledWorkShape:
    same = ("asked_by", "state", "reason", "position", "exit_code", "error", "text")
    values: Any = {name: getattr(work, name) for name in same}
    return ScheduledWorkShape(
        **values,
        work_item_id=work.work_item,
        asked_at=epoch(work.asked_at),
        run_id=work.run,
        run_state=work.run_state or None,  # type: ignore[arg-type]
        started_at=epoch_or_none(work.started_at),
        finished_at=epoch_or_none(work.finished_at),
    )
