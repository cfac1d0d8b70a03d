"""/v1/deliveries: webhook deliveries, also refused ones; list, show, replay."""

import base64
import json
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query, Router
from ninja.responses import Status as Answer
from pydantic import Field

from agents_app.models import Delivery
from agents_app.webhooks import deliveries, headers_of, work_of
from gateway_app.access import TO_OPERATE, TO_READ, answers, caller_of
from gateway_app.api.fields import (
    Epoch,
    Seconds,
    Shape,
    Text,
    epoch,
    epoch_or_none,
    moment,
    utc_now,
)
from gateway_app.api.paging import NEXT_CURSOR, PageFilters, page_of
from gateway_app.api.run_shapes import WorkState
from gateway_app.api.tenant_rows import deliveries_of, find_delivery, find_source
from gateway_app.api.views import trace_of

router = Router(tags=["deliveries"])
# A body may have megabytes: it is read only for the response about one delivery.
_LARGE = ("body", "headers", "context", "decisions")
Outcome = Literal["matched", "unmatched", "ignored", "unparseable", "refused"]


class DeliveryShape(Shape):
    id: int
    source: str
    provider: str
    delivery_id: str = Field(description="The id that the sender gave, or a hash of the body.")
    event: str
    action: str
    outcome: Outcome
    reason: str
    matched: int
    skipped: int
    signed_by: str = Field(description="The name of the secret that verified the signature.")
    received_at: Epoch
    replays: int
    replayed_at: Epoch | None


class DecisionShape(Shape):
    agent: str
    matched: bool
    reason: str


class DeliveryWorkShape(Shape):
    work_item_id: int
    agent: str
    state: WorkState
    requested_by: str
    created_at: Epoch


class DeliveryDetailShape(DeliveryShape):
    headers: dict[str, str] = Field(description="Without signatures and credentials.")
    body: str
    body_encoding: Literal["text", "base64"] = Field(description="base64 if the body is not UTF-8.")
    context: dict[str, Any] | None = Field(
        description="The context that agents receive; null if none."
    )
    decisions: list[DecisionShape]
    work: list[DeliveryWorkShape] = Field(description="Includes the work of all replays.")


class DeliveryPage(Shape):
    deliveries: list[DeliveryShape]
    next_cursor: str | None = NEXT_CURSOR


class DeliveryFilters(PageFilters):
    source: str | None = Field(None, max_length=100)
    provider: Text | None = Field(None, max_length=20)
    outcome: Outcome | None = None
    event: Text | None = Field(None, max_length=200)
    since: Seconds | None = Field(None, description="Received at this time or later.")


class ReplayedDeliveryShape(Shape):
    delivery: int
    matched: int = Field(description="The number of agents that got new work.")
    skipped: int
    replays: int = Field(description="How often the delivery was replayed, with this one.")


@router.get("/deliveries", response=answers(DeliveryPage), auth=TO_READ)
def list_deliveries(request: HttpRequest, filters: Query[DeliveryFilters]) -> DeliveryPage:
    """Newest first, without bodies."""
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


@router.get("/deliveries/{int:delivery_id}", response=answers(DeliveryDetailShape), auth=TO_READ)
def show_delivery(request: HttpRequest, delivery_id: int) -> DeliveryDetailShape:
    """One delivery with its body, and for each agent why it matched or not."""
    return delivery_detail_shape(find_delivery(caller_of(request).tenant, delivery_id))


@router.post(
    "/deliveries/{int:delivery_id}/replay",
    response=answers(ReplayedDeliveryShape, 202),
    auth=TO_OPERATE,
)
def replay_delivery(request: HttpRequest, delivery_id: int) -> Answer[ReplayedDeliveryShape]:
    """Matches the delivery again and queues work for the agents that match now."""
    caller = caller_of(request)
    delivery = find_delivery(caller.tenant, delivery_id)
    receipt = deliveries.replay(delivery, caller.by, utc_now(), trace_of(request))
    delivery.refresh_from_db(fields=["replays"])
    shape = ReplayedDeliveryShape(
        delivery=receipt.delivery,
        matched=receipt.matched,
        skipped=receipt.skipped,
        replays=delivery.replays,
    )
    return Answer(202, shape)


# --- a delivery as JSON ----------------------------------------------------------------------

_SAME = (
    *("id", "provider", "delivery_id", "event", "action", "outcome", "reason"),
    *("matched", "skipped", "signed_by", "replays"),
)


def delivery_shape(delivery: Delivery) -> DeliveryShape:
    return DeliveryShape(**_values(delivery))


def delivery_detail_shape(delivery: Delivery) -> DeliveryDetailShape:
    body, encoding = _body(bytes(delivery.body))
    return DeliveryDetailShape(
        **_values(delivery),
        headers=headers_of(delivery),
        body=body,
        body_encoding=encoding,
        context=json.loads(delivery.context) if delivery.context else None,
        decisions=json.loads(delivery.decisions),
        work=_work(delivery),
    )


def _values(delivery: Delivery) -> dict[str, Any]:
    return {name: getattr(delivery, name) for name in _SAME} | {
        "source": delivery.source.name,
        "received_at": epoch(delivery.received_at),
        "replayed_at": epoch_or_none(delivery.replayed_at),
    }


def _body(raw: bytes) -> tuple[str, Literal["text", "base64"]]:
    try:
        return raw.decode(), "text"
    except UnicodeDecodeError:
        return base64.b64encode(raw).decode(), "base64"


def _work(delivery: Delivery) -> list[DeliveryWorkShape]:
    return [
        DeliveryWorkShape(
            work_item_id=item.pk,
            agent=item.agent.name,
            state=item.state,  # type: ignore[arg-type]
            requested_by=item.requested_by,
            created_at=epoch(item.created_at),
        )
        for item in work_of(delivery)
    ]
