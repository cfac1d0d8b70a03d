"""/v1/events: the entries of the journal."""

from typing import Literal

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from agents_app.models import RunEvent
from gateway_app.access import TO_READ, answers, caller_of
from gateway_app.api.fields import Epoch, Seconds, Shape, Text, epoch, moment
from gateway_app.api.paging import PageFilters, cursor_at, page_of
from gateway_app.api.tenant_rows import events_of, find_agent, find_run

router = Router(tags=["events"])


class EventShape(Shape):
    id: int
    name: str
    at: Epoch
    agent: str | None
    run_id: int | None
    detail: str


class EventPage(Shape):
    events: list[EventShape]
    next_cursor: str | None = Field(
        description="The `cursor` of the next page; with order=oldest also for future events."
    )


class EventFilters(PageFilters):
    limit: int = Field(100, ge=1, le=500)
    order: Literal["newest", "oldest"] = "newest"
    name: Text | None = Field(None, max_length=40, description="For example run.failed.")
    since: Seconds | None = None
    agent: str | None = None
    run_id: int | None = Field(None, ge=1, lt=2**63)


@router.get("/events", response=answers(EventPage), auth=TO_READ)
def list_events(request: HttpRequest, filters: Query[EventFilters]) -> EventPage:
    tenant = caller_of(request).tenant
    events = events_of(tenant)
    if filters.name is not None:
        events = events.filter(name=filters.name)
    if filters.since is not None:
        events = events.filter(at__gte=moment(filters.since))
    if filters.agent is not None:
        events = events.filter(agent=find_agent(tenant, filters.agent))
    if filters.run_id is not None:
        events = events.filter(run=find_run(tenant, filters.run_id))
    order = "-pk" if filters.order == "newest" else "pk"
    page = page_of(events, order, filters)
    following = page.next_cursor
    if following is None and filters.order == "oldest":
        following = cursor_at(page.rows[-1].pk, order) if page.rows else filters.cursor
    return EventPage(events=[_shown(event) for event in page.rows], next_cursor=following)


def _shown(event: RunEvent) -> EventShape:
    return EventShape(
        id=event.pk,
        name=event.name,
        at=epoch(event.at),
        agent=event.agent.name if event.agent else None,
        run_id=event.run_id,
        detail=event.detail,
    )
