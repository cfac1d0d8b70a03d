"""Jira: HMAC over the body, which contains the time of the event; the event in the body."""

import re
from datetime import datetime
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import filter_on
from agents_app.webhooks.providers.provider import UNIQUE_BODY_SECONDS, Provider, id_in_header
from agents_app.webhooks.providers.reading import (
    as_text,
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

_DIGITS = re.compile(r"[0-9]{1,12}")


def verify(request: Signed, secrets: Secrets, now: datetime) -> str | None:
    del now
    given = request.header("x-hub-signature")
    return signed_by_mac(secrets, request.body, given, prefix="sha256=")


def stale(request: Signed, now: datetime) -> bool:
    """Older than a body is remembered: a captured delivery can never be sent again.

    Jira repeats a delivery within half an hour, with the time of the event."""
    happened = whole(read_json(request.body), "timestamp")
    if happened is None:
        return False
    return not -WINDOW_SECONDS <= now.timestamp() - happened / 1000 < UNIQUE_BODY_SECONDS


def parse(headers: Headers, payload: Any, received_at: datetime) -> Context | None:
    del headers
    event = text(payload, "webhookEvent")
    if not event:
        return None
    comment = dig(payload, "comment")
    return Context(
        source="jira",
        event=event,
        action=event.rpartition("_")[2],
        sender=_person(payload, "user") or _person(comment, "author") or "unknown",
        timestamp=iso(received_at),
        comment=_written(comment, "body"),
        **_issue_fields(dig(payload, "issue"), payload),
    )


def _issue_fields(issue: Any, payload: Any) -> dict[str, Any]:
    """The fields of the issue; sprints, versions and others have a name at most."""
    if not issue:
        subject = next((value for value in _values(payload) if text(value, "name")), None)
        return {"title": text(subject, "name"), "url": text(subject, "self")}
    key, fields = text(issue, "key") or "", dig(issue, "fields")
    digits = key.rpartition("-")[2]
    return {
        "repo": text(fields, "project", "key") or key.rpartition("-")[0],
        "number": int(digits) if _DIGITS.fullmatch(digits) else None,
        "title": text(fields, "summary"),
        "body": _written(fields, "description"),
        "url": _page(text(issue, "self"), key),
        "author": first(_person(fields, "reporter"), _person(fields, "creator")),
        "assignee": _person(fields, "assignee"),
        "labels": texts(items(fields, "labels")),
        "conclusion": text(fields, "status", "name"),
    }


def _values(payload: Any) -> list[Any]:
    return [payload[name] for name in ("sprint", "version", "project", "board") if name in payload]


def _person(value: Any, role: str) -> str | None:
    """Jira Cloud has no names of accounts; a Data Center has both."""
    return first(text(value, role, "emailAddress"), text(value, role, "displayName"))


def _written(value: Any, key: str) -> str | None:
    """A text, or a document of Atlassian as JSON."""
    found = dig(value, key)
    return as_text(found) if isinstance(found, dict) else text(value, key)


def _page(address: str | None, key: str) -> str | None:
    """The page of an issue on the site of its API address."""
    site, api, _ = (address or "").partition("/rest/")
    return f"{site}/browse/{key}" if api and key else address


JIRA = Provider(
    name="jira",
    verify=verify,
    stale=stale,
    delivery_id=id_in_header("x-atlassian-webhook-identifier"),
    parse=parse,
    unique_bodies=True,
    parses_early=True,
    filters={
        "events": filter_on("event"),
        "actions": filter_on("action"),
        "projects": filter_on("repo"),
        "labels": filter_on("labels"),
        "assignee": filter_on("assignee"),
        "author": filter_on("author"),
        "statuses": filter_on("conclusion"),
    },
)
