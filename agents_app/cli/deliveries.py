"""A delivery as text and as JSON."""

import json
from typing import Any

from agents_app.models import Delivery, WorkItem
from agents_app.text import as_text
from agents_app.webhooks import headers_of, work_of

LONGEST_BODY = 2000


def delivery_as_json(delivery: Delivery) -> dict[str, Any]:
    """The columns without body, headers and decisions."""
    return {
        "id": delivery.pk,
        "source": delivery.source.name,
        "provider": delivery.provider,
        "delivery_id": delivery.delivery_id,
        "event": delivery.event,
        "action": delivery.action,
        "outcome": str(delivery.outcome),
        "reason": delivery.reason,
        "matched": delivery.matched,
        "skipped": delivery.skipped,
        "signed_by": delivery.signed_by,
        "received_at": delivery.received_at,
        "replays": delivery.replays,
        "replayed_at": delivery.replayed_at,
    }


def delivery_in_full(delivery: Delivery) -> dict[str, Any]:
    """All columns, with decisions and work items."""
    decisions = json.loads(delivery.decisions)
    # `agents` is the name of version 0.1.0, which scripts read.
    return delivery_as_json(delivery) | {
        "decisions": decisions,
        "headers": headers_of(delivery),
        "body": as_text(bytes(delivery.body)),
        "context": json.loads(delivery.context) if delivery.context else None,
        "agents": decisions,
        "work": [work_as_json(item) for item in work_of(delivery)],
    }


def work_as_json(item: WorkItem) -> dict[str, Any]:
    return {
        "work_item_id": item.pk,
        "requested_by": item.requested_by,
        "work_item": item.pk,
        "agent": item.agent.name,
        "state": str(item.state),
        "asked_by": item.requested_by,
        "created_at": item.created_at,
    }


def decision_rows(decisions: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [
        (each["agent"], "matched" if each["matched"] else "skipped", each["reason"])
        for each in decisions
    ]
