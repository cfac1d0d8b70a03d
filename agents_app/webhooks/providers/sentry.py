"""Sentry: HMAC over the body; its timestamp header is not signed and therefore not checked."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import filter_on
from agents_app.webhooks.providers.provider import Provider, id_in_header
from agents_app.webhooks.providers.reading import dig, first, iso, text
from agents_app.webhooks.providers.signing import Headers, Secrets, Signed, signed_by_mac

Fields = dict[str, Any]


def verify(request: Signed, secrets: Secrets, now: datetime) -> str | None:
    del now
    return signed_by_mac(secrets, request.body, request.header("sentry-hook-signature"))


def parse(headers: Headers, payload: Any, received_at: datetime) -> Context | None:
    resource = text(headers.get("sentry-hook-resource"))
    if not resource:
        return None
    action = text(payload, "action")
    read = _RESOURCES.get(resource)
    fields = read(dig(payload, "data")) if read else {"title": action or resource}
    actor = first(text(payload, "actor", "name"), text(payload, "actor", "type"))
    return Context(
        source="sentry",
        event=resource,
        action=action,
        sender=actor or "unknown",
        timestamp=iso(received_at),
        **fields,
    )


def _subject(subject: Any) -> Fields:
    return {
        "repo": _project(subject),
        "title": text(subject, "title"),
        "url": text(subject, "web_url"),
    }


def _project(subject: Any) -> str:
    return first(text(subject, "project", "slug"), text(subject, "project")) or ""


def _with_message(key: str) -> Callable[[Any], Fields]:
    return lambda data: {**_subject(dig(data, key)), "body": text(data, key, "message")}


def _event_alert(data: Any) -> Fields:
    """An alert belongs to a rule; a payload without the rule may name the project."""
    fields = _with_message("event")(data)
    return {**fields, "repo": text(data, "triggered_rule") or fields["repo"]}


def _issue(data: Any) -> Fields:
    issue = dig(data, "issue")
    return {**_subject(issue), "assignee": text(issue, "assignedTo", "name")}


def _metric_alert(data: Any) -> Fields:
    alert = dig(data, "metric_alert")
    return {**_subject(alert), "repo": text(alert, "organization", "slug") or ""}


def _comment(data: Any) -> Fields:
    return {**_subject(dig(data, "issue")), "comment": text(data, "comment", "text")}


_RESOURCES: dict[str, Callable[[Any], Fields]] = {
    "event_alert": _event_alert,
    "metric_alert": _metric_alert,
    "issue": _issue,
    "error": _with_message("error"),
    "comment": _comment,
}

SENTRY = Provider(
    name="sentry",
    verify=verify,
    delivery_id=id_in_header("request-id"),
    parse=parse,
    unique_bodies=True,
    filters={"resources": filter_on("event")},
)
