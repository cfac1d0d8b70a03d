"""Deliveries as the API shows them; whole ones with their body, and with every agent's reason."""

import base64
import json
from typing import Any, Literal

from pydantic import Field

from agents_app.models import Delivery
from agents_app.webhooks import headers_of, work_of
from gateway_app.api.fields import Epoch, Shape, epoch, epoch_or_none
from gateway_app.api.run_shapes import WorkState

Outcome = Literal["matched", "unmatched", "ignored", "unparseable"]


class DeliveryShape(Shape):
    id: int
    source: str
    provider: str
    delivery_id: str = Field(description="What the sender calls it, or a hash of its body.")
    event: str
    action: str
    outcome: Outcome
    reason: str
    matched: int
    skipped: int
    signed_by: str = Field(description="The name of the secret that let it in.")
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


class WholeDeliveryShape(DeliveryShape):
    headers: dict[str, str] = Field(description="Without what proved who sent it.")
    body: str
    body_encoding: Literal["text", "base64"] = Field(
        description="base64, if the body is no text in UTF-8."
    )
    context: dict[str, Any] | None = Field(description="What agents are told; null: nothing.")
    decisions: list[DecisionShape]
    work: list[DeliveryWorkShape] = Field(description="Of all its replays, too.")


_SAME = (
    *("id", "provider", "delivery_id", "event", "action", "outcome", "reason"),
    *("matched", "skipped", "signed_by", "replays"),
)


def delivery_shape(delivery: Delivery) -> DeliveryShape:
    return DeliveryShape(**_values(delivery))


def whole_delivery_shape(delivery: Delivery) -> WholeDeliveryShape:
    body, encoding = _body(bytes(delivery.body))
    return WholeDeliveryShape(
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
