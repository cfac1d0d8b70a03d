"""/v1/firings and /v1/schedules/{id}/firings: every due time with its outcome."""

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from agents_app.models import Firing
from agents_app.schedules import explain_outcome, read_firings
from gateway_app.access import TO_READ, answers, caller_of
from gateway_app.api.fields import Epoch, Seconds, Shape, epoch, moment
from gateway_app.api.paging import NEXT_CURSOR, PageFilters, page_by_time
from gateway_app.api.run_shapes import RunState
from gateway_app.api.tenant_rows import find_agent, find_schedule, firings_of

router = Router(tags=["schedules"])
Outcome = Literal["undecided", "polling", "started", "queued", "skipped", "failed"]


class FiringShape(Shape):
    id: int
    schedule_id: int
    schedule: str = Field(description="The name of the schedule.")
    agent: str
    due_at: Epoch
    recorded_at: Epoch = Field(description="When beat claimed the firing.")
    decide_at: Epoch = Field(description="The due time with its jitter, or later after a downtime.")
    late_seconds: float
    outcome: Outcome
    reason: str = Field(description="Of a skipped firing.")
    text: str = Field(description="The outcome and its reason as a sentence.")
    work_item_id: int | None
    run_id: int | None = Field(description="The last run of its work.")
    run_state: RunState | None
    work_text: str = Field(description="The state of its work as a sentence.")


class FiringPage(Shape):
    firings: list[FiringShape]
    next_cursor: str | None = NEXT_CURSOR


class OutcomeFilters(PageFilters):
    outcome: Outcome | None = None


class FiringFilters(OutcomeFilters):
    agent: str | None = None
    since: Seconds | None = Field(None, description="Claimed at this time or later.")


@router.get("/schedules/{int:schedule_id}/firings", response=answers(FiringPage), auth=TO_READ)
def list_firings_of_schedule(
    request: HttpRequest, schedule_id: int, filters: Query[OutcomeFilters]
) -> FiringPage:
    """Latest due time first."""
    tenant = caller_of(request).tenant
    found = firings_of(tenant).filter(schedule=find_schedule(tenant, schedule_id))
    return _page(found, "due_at", filters)


@router.get("/firings", response=answers(FiringPage), auth=TO_READ)
def list_firings(request: HttpRequest, filters: Query[FiringFilters]) -> FiringPage:
    """Of all schedules, newest first."""
    tenant = caller_of(request).tenant
    found = firings_of(tenant)
    if filters.agent is not None:
        found = found.filter(schedule__agent=find_agent(tenant, filters.agent))
    if filters.since is not None:
        found = found.filter(recorded_at__gte=moment(filters.since))
    return _page(found, "recorded_at", filters)


def _page(found: Any, column: str, filters: OutcomeFilters) -> FiringPage:
    if filters.outcome is not None:
        stored = Firing.Outcome.UNDECIDED if filters.outcome == "undecided" else filters.outcome
        found = found.filter(outcome=stored)
    page = page_by_time(found, column, filters)
    rows = found.filter(pk__in=[firing.pk for firing in page.rows])
    entries = read_firings(rows)
    texts = {(schedule.pk, entry.due_at): entry.work_text for schedule, entry in entries}
    shapes = [firing_shape(row, texts.get((row.schedule_id, row.due_at), "")) for row in page.rows]
    return FiringPage(firings=shapes, next_cursor=page.next_cursor)


def firing_shape(firing: Any, work_text: str) -> FiringShape:
    """The firing must come from `firings_of`, which annotates it."""
    same = ("id", "schedule_id", "late_seconds", "reason", "work_item_id", "run_id", "run_state")
    values: dict[str, Any] = {name: getattr(firing, name) for name in same}
    values |= {n: epoch(getattr(firing, n)) for n in ("due_at", "recorded_at", "decide_at")}
    return FiringShape(
        **values,
        schedule=firing.schedule.name,
        agent=firing.schedule.agent.name,
        outcome=firing.outcome or "undecided",
        work_text=work_text,
        text=explain_outcome(firing, firing.schedule.timezone),
    )
