"""/v1/notifications/stream: starts and ends of runs as they happen."""

from typing import Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from agents_app.events import newest_entry_id
from gateway_app.access import TO_READ, Invalid, answers, caller_of
from gateway_app.api.event_streams import last_event_id, streamed
from gateway_app.api.fields import LARGEST_KEY, Filters, wants_iso_times
from gateway_app.api.tenant_rows import find_agent, find_run
from gateway_app.streams import (
    COMPLETED,
    FAILED,
    STARTED,
    JournalFilter,
    NotificationRequest,
    start_stream,
    subscriber_of,
)

router = Router(tags=["notifications"])
_KINDS = (STARTED, COMPLETED, FAILED)
_STREAM = streamed(
    "`open`, then one `notification` per event; a comment after 30 s without one. `error` gives "
    "the reason why the stream ends: `slow_consumer`, `unauthorized`, `tenant_disabled`."
)


class NotificationFilters(Filters):
    agent: str | None = None
    run_id: int | None = Field(None, ge=1, lt=2**63)
    kinds: str | None = Field(
        None, max_length=1000, description=f"Separated by commas: {', '.join(_KINDS)}."
    )
    events: Literal["runs", "all"] = Field(
        "runs", description="`all`: every entry of /v1/events, with its name as `kind`."
    )
    last_event_id: int | None = Field(
        None, ge=0, le=LARGEST_KEY, description="For clients that cannot send the header."
    )


@router.get("/notifications/stream", response=answers(None), auth=TO_READ, openapi_extra=_STREAM)
def stream_notifications(request: HttpRequest, filters: Query[NotificationFilters]) -> HttpResponse:
    """A stream of events without end; a broken stream is resumed where it ended."""
    tenant = caller_of(request).tenant
    if filters.agent is not None:
        find_agent(tenant, filters.agent)
    if filters.run_id is not None:
        find_run(tenant, filters.run_id)
    everything = filters.events == "all"
    wanted = JournalFilter(
        *(tenant.pk, everything, _kinds(filters.kinds, everything), filters.agent, filters.run_id),
        iso_times=wants_iso_times(request),
    )
    subscriber = subscriber_of(request)
    return start_stream(request, NotificationRequest(subscriber, wanted, _after(request, filters)))


def _kinds(text: str | None, everything: bool) -> frozenset[str]:
    kinds = frozenset(filter(None, (part.strip() for part in (text or "").split(","))))
    if unknown := kinds - frozenset(kinds if everything else _KINDS):
        raise Invalid(f"kinds: {min(unknown)[:80]!r} is not one of {', '.join(_KINDS)}")
    return kinds


def _after(request: HttpRequest, filters: NotificationFilters) -> int | None:
    after = last_event_id(request, filters.last_event_id)
    # An id of another database: the stream starts with the next event.
    return None if after is not None and after > newest_entry_id() else after
