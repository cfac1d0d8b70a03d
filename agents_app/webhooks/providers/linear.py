"""Linear: HMAC over a body that holds the time at which it was sent."""

from datetime import datetime
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import looks_at
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

# Linear tries again after a minute, an hour and six hours, and does not say whether the time in the
# body is then a new one: a shorter window could refuse what was never delivered.
RETRIES_SECONDS = 8 * 3600
_EVENTS = {"Issue": "issues", "Comment": "issue_comment"}


def verify(request: Signed, secrets: Secrets, now: datetime) -> str | None:
    del now
    return signed_by_mac(secrets, request.body, request.header("linear-signature"))


def stale(request: Signed, now: datetime) -> bool:
    """A signed body without a time is Linear's own doing: nobody else could have left it out."""
    sent = whole(read_json(request.body), "webhookTimestamp")
    if sent is None:
        return False
    return not -WINDOW_SECONDS <= now.timestamp() - sent / 1000 <= RETRIES_SECONDS


def parse(headers: Headers, payload: Any, received_at: datetime) -> Context | None:
    del headers
    kind, action, data = text(payload, "type"), text(payload, "action"), dig(payload, "data")
    organization = text(payload, "organizationId")
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
        sender=_person(payload, "actor") or "unknown",
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


def _person(value: Any, role: str) -> str | None:
    return first(text(value, role, "email"), text(value, role, "name"))


LINEAR = Provider(
    name="linear",
    verify=verify,
    stale=stale,
    delivery_id=id_in_header("linear-delivery"),
    parse=parse,
    filters={
        "events": looks_at("event"),
        "actions": looks_at("action"),
        "organizations": looks_at("repo"),
        "labels": looks_at("labels"),
        "assignee": looks_at("assignee"),
        "author": looks_at("author"),
    },
)
