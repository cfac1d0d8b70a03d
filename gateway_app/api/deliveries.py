"""/v1/deliveries: the webhooks that were let in; list, show, replay."""

from django.http import HttpRequest
from ninja import Query, Router
from ninja.responses import Status as Answer
from pydantic import Field

from agents_app.webhooks import deliveries
from gateway_app.access import TO_OPERATE, TO_READ, answers, caller_of
from gateway_app.api.delivery_shapes import (
    DeliveryShape,
    Outcome,
    WholeDeliveryShape,
    delivery_shape,
    whole_delivery_shape,
)
from gateway_app.api.fields import Seconds, Shape, Text, moment, utc_now
from gateway_app.api.owned import deliveries_of, find_delivery, find_source
from gateway_app.api.paging import NEXT_CURSOR, PageFilters, page_of
from gateway_app.api.tracing import trace_of

router = Router(tags=["deliveries"])
# A body may be megabytes: only the answer for one reads it.
_LARGE = ("body", "headers", "context", "decisions")


class DeliveryPage(Shape):
    deliveries: list[DeliveryShape]
    next_cursor: str | None = NEXT_CURSOR


class DeliveryFilters(PageFilters):
    source: str | None = Field(None, max_length=100)
    provider: Text | None = Field(None, max_length=20)
    outcome: Outcome | None = None
    event: Text | None = Field(None, max_length=200)
    since: Seconds | None = Field(None, description="Received at this second or later.")


class Replayed(Shape):
    delivery: int
    matched: int = Field(description="Agents that have new work of it.")
    skipped: int
    replays: int = Field(description="How often it was replayed by now.")


@router.get("/deliveries", response=answers(DeliveryPage), auth=TO_READ)
def list_deliveries(request: HttpRequest, filters: Query[DeliveryFilters]) -> DeliveryPage:
    """The newest first, without their bodies."""
    tenant = caller_of(request).tenant
    found = deliveries_of(tenant).defer(*_LARGE)
    if filters.source is not None:
        found = found.filter(source=find_source(tenant, filters.source))
    if filters.since is not None:
        found = found.filter(received_at__gte=moment(filters.since))
    for name in ("provider", "outcome", "event"):
        if (value := getattr(filters, name)) is not None:
            found = found.filter(**{name: value})
    page = page_of(found, "-pk", filters)
    shapes = [delivery_shape(delivery) for delivery in page.rows]
    return DeliveryPage(deliveries=shapes, next_cursor=page.next_cursor)


@router.get("/deliveries/{int:delivery_id}", response=answers(WholeDeliveryShape), auth=TO_READ)
def show_delivery(request: HttpRequest, delivery_id: int) -> WholeDeliveryShape:
    """With its body, and for each agent why it was told or not."""
    return whole_delivery_shape(find_delivery(caller_of(request).tenant, delivery_id))


@router.post(
    "/deliveries/{int:delivery_id}/replay", response=answers(Replayed, 202), auth=TO_OPERATE
)
def replay_delivery(request: HttpRequest, delivery_id: int) -> Answer[Replayed]:
    """The same delivery once more, for whoever wants it now; their work is marked as a replay."""
    caller = caller_of(request)
    delivery = find_delivery(caller.tenant, delivery_id)
    receipt = deliveries.replay(delivery, caller.by, utc_now(), trace_of(request))
    delivery.refresh_from_db(fields=["replays"])
    shape = Replayed(
        delivery=receipt.delivery,
        matched=receipt.matched,
        skipped=receipt.skipped,
        replays=delivery.replays,
    )
    return Answer(202, shape)
