"""Linear: HMAC over the body, which contains the time at which it was sent."""

from datetime import datetime
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import filter_on
from agents_app.webhooks.providers.provider import Provider, id_in_header
from agents_app.webhooks.providers.reading import (
    dig,
    first,
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
    signed_by_mac,
)

# Linear repeats a delivery after a minute, an hour and six hours, and does not document whether the
# body then has a new time: a shorter window could refuse a delivery that was never stored.
RETRIES_SECONDS = 8 * 3600
_EVENTS = {"Issue": "issues", "Comment": "issue_comment"}


def verify(request: Signed, secrets: Secrets, now: datetime) -> str | None:
    del now
    return signed_by_mac(secrets, request.body, request.header("linear-signature"))


def stale(request: Signed, now: datetime) -> bool:
    """A signed body without a time is accepted: only Linear could sign it."""
    sent = whole(read_json(request.body), "webhookTimestamp")
    if sent is None:
        return False
    return not -WINDOW_SECONDS <= now.timestamp() - sent / 1000 <= RETRIES_SECONDS


def parse(headers: Headers, payload: Any, received_at: datetime) -> Context | None:
    del headers
    kind, action, data = text(payload, "type"), text(payload, "action"), dig(payload, "data")
    organization = first(text(payload, "organizationId"), text(data, "team", "organization", "id"))
    if not kind or not action or not organization or not isinstance(data, dict):
        return None
    fields = _fields(kind, action, data)
    if fields is None:
        return None
    return Context(
        source="linear",
        event=_EVENTS.get(kind, kind.lower()),
        action=action,
        repo=organization,
        sender=_sender(payload) or "unknown",
        timestamp=iso(received_at),
        **fields,
    )


def _fields(kind: str, action: str, data: Any) -> dict[str, Any] | None:
    if kind == "Issue":
        return {
            **_issue(data),
            "body": text(data, "description"),
            "assignee": _person(data, "assignee"),
        }
    if kind == "Comment":
        issue = dig(data, "issue")
        url = first(text(data, "url"), text(issue, "url"))
        return {**_issue(issue), "url": url, "comment": text(data, "body")} if issue else None
    title = first(text(data, "title"), text(data, "name"), action)
    return {"title": title, "url": text(data, "url")}


def _issue(issue: Any) -> dict[str, Any]:
    return {
        "number": whole(issue, "number"),
        "title": text(issue, "title"),
        "url": text(issue, "url"),
        "author": _person(issue, "creator"),
        "labels": texts(items(issue, "labels"), "name"),
    }


def _sender(payload: Any) -> str | None:
    return first(*(_person(payload, role) for role in ("createdBy", "updatedBy", "actor")))


def _person(value: Any, role: str) -> str | None:
    return first(text(value, role, "email"), text(value, role, "name"))


LINEAR = Provider(
    name="linear",
    verify=verify,
    stale=stale,
    delivery_id=id_in_header("linear-delivery"),
    parse=parse,
    unique_bodies=True,
    parses_early=True,
    filters={
        "events": filter_on("event"),
        "actions": filter_on("action"),
        "organizations": filter_on("repo"),
        "labels": filter_on("labels"),
        "assignee": filter_on("assignee"),
        "author": filter_on("author"),
    },
)
