"""A delivery as commands show it, in words and as JSON."""

import json
from typing import Any

from agents_app.models import Delivery, WorkItem
from agents_app.text import as_text
from agents_app.webhooks import headers_of, work_of

LONGEST_BODY = 2000


def delivery_as_json(delivery: Delivery) -> dict[str, Any]:
    """Without the body, which `shown` has."""
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


def shown(delivery: Delivery) -> dict[str, Any]:
    """Everything of it, with what became of its work."""
    return delivery_as_json(delivery) | {
        "headers": headers_of(delivery),
        "body": as_text(bytes(delivery.body)),
        "context": json.loads(delivery.context) if delivery.context else None,
        "agents": json.loads(delivery.decisions),
        "work": [worked(item) for item in work_of(delivery)],
    }


def worked(item: WorkItem) -> dict[str, Any]:
    return {
        "work_item": item.pk,
        "agent": item.agent.name,
        "state": str(item.state),
        "asked_by": item.requested_by,
        "created_at": item.created_at,
    }


def reason_rows(decisions: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [
        (each["agent"], "matched" if each["matched"] else "skipped", each["reason"])
        for each in decisions
    ]
