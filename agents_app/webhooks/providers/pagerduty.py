"""PagerDuty (webhooks of version 3): one or more HMACs of the body in a header."""

from datetime import datetime
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import filter_on, filter_on_label
from agents_app.webhooks.providers.provider import (
    MEGABYTE,
    UNIQUE_BODY_SECONDS,
    Provider,
    id_in_header,
)
from agents_app.webhooks.providers.reading import (
    dig,
    first,
    instant,
    iso,
    items,
    read_json,
    text,
    texts,
    whole,
)
from agents_app.webhooks.providers.signing import (
    WINDOW_SECONDS,
    Headers,
    Secrets,
    Signed,
    signed_by_any_mac,
)

PING = "pagey.ping"
PRIORITY, URGENCY = "priority=", "urgency="


def verify(request: Signed, secrets: Secrets, now: datetime) -> str | None:
    """Several signatures, each with its version, while a secret changes."""
    del now
    parts = request.header("x-pagerduty-signature").split(",")
    given = [part.strip().removeprefix("v1=") for part in parts if part.strip().startswith("v1=")]
    return signed_by_any_mac(secrets, request.body, given)


def stale(request: Signed, now: datetime) -> bool:
    """Older than a body is remembered: a captured delivery can never be sent again."""
    occurred = instant(read_json(request.body), "event", "occurred_at")
    if occurred is None:
        return False
    return not -WINDOW_SECONDS <= (now - occurred).total_seconds() < UNIQUE_BODY_SECONDS


def parse(headers: Headers, payload: Any, received_at: datetime) -> Context | None:
    del headers
    event, data = dig(payload, "event"), dig(payload, "event", "data")
    name = text(event, "event_type")
    if not name or name == PING:
        return None
    # Notes, status updates and responders belong to an incident and name it.
    incident = dig(data, "incident") or data
    return Context(
        source="pagerduty",
        event=name,
        action=name.rpartition(".")[2],
        repo=text(data, "service", "summary") or "",
        number=whole(data, "number"),
        title=first(text(incident, "title"), text(incident, "summary")),
        url=text(incident, "html_url"),
        comment=first(text(data, "content"), text(data, "message")),
        assignee=first(*texts(items(data, "assignees"), "summary")),
        labels=_labels(data),
        conclusion=text(data, "status"),
        sender=text(event, "agent", "summary") or "unknown",
        timestamp=text(event, "occurred_at") or iso(received_at),
    )


def _labels(data: Any) -> tuple[str, ...] | None:
    priority, urgency = text(data, "priority", "summary"), text(data, "urgency")
    found = [f"{PRIORITY}{priority}"] if priority else []
    found += [f"{URGENCY}{urgency}"] if urgency else []
    return tuple(found) or None


PAGERDUTY = Provider(
    name="pagerduty",
    verify=verify,
    stale=stale,
    delivery_id=id_in_header("x-webhook-id"),
    parse=parse,
    unique_bodies=True,
    parses_early=True,
    body_limit_bytes=MEGABYTE,
    filters={
        "events": filter_on("event"),
        "actions": filter_on("action"),
        "services": filter_on("repo"),
        "statuses": filter_on("conclusion"),
        "priorities": filter_on_label(PRIORITY),
        "urgencies": filter_on_label(URGENCY),
        "assignee": filter_on("assignee"),
    },
)
