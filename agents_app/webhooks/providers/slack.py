"""Slack Events API: HMAC over timestamp and body; Slack confirms a new address by a challenge."""

from datetime import datetime
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import FilterField, filter_on
from agents_app.webhooks.providers.provider import MEGABYTE, Provider, usable_id
from agents_app.webhooks.providers.reading import dig, first, iso, read_json, text
from agents_app.webhooks.providers.signing import (
    Headers,
    Secrets,
    Signed,
    is_fresh,
    raw,
    signed_by_mac,
)

CHANNEL = "channel:"


def verify(request: Signed, secrets: Secrets, now: datetime) -> str | None:
    sent = request.header("x-slack-request-timestamp")
    message = b"v0:" + raw(sent) + b":" + request.body
    signer = signed_by_mac(secrets, message, request.header("x-slack-signature"), prefix="v0=")
    return signer if is_fresh(sent, now) else None


def delivery_id(headers: Headers, body: bytes) -> str:
    del headers
    return usable_id(text(read_json(body), "event_id"), body)


def answer(payload: Any) -> dict[str, Any] | None:
    challenge = text(payload, "challenge")
    is_challenge = dig(payload, "type") == "url_verification" and challenge
    return {"challenge": challenge} if is_challenge else None


def parse(headers: Headers, payload: Any, received_at: datetime) -> Context | None:
    del headers
    event = dig(payload, "event")
    kind = text(event, "type")
    if dig(payload, "type") != "event_callback" or not kind:
        return None
    return Context(
        source="slack",
        event=kind,
        repo=text(payload, "team_id") or "",
        sender=first(text(event, "user"), text(event, "bot_id")) or "unknown",
        timestamp=iso(received_at),
        **_fields(kind, event),
    )


def _fields(kind: str, event: Any) -> dict[str, Any]:
    if kind in {"message", "app_mention"}:
        channel = text(event, "channel")
        where = f"{CHANNEL}{channel}" if channel else None
        return {"body": text(event, "text"), "comment": where}
    if kind in {"reaction_added", "reaction_removed"}:
        item, channel = text(event, "item", "type"), text(event, "item", "channel")
        where = f"{item}:{channel or ''}" if item else None
        return {"title": text(event, "reaction"), "comment": where}
    return {"title": kind, "body": text(event, "text")}


def _channel(context: Context) -> list[str]:
    comment = context.comment or ""
    return [comment.removeprefix(CHANNEL)] if comment.startswith(CHANNEL) else []


SLACK = Provider(
    name="slack",
    verify=verify,
    delivery_id=delivery_id,
    parse=parse,
    answer=answer,
    parses_early=True,
    body_limit_bytes=MEGABYTE,
    filters={
        "events": filter_on("event"),
        "channels": FilterField(_channel, "channel"),
        "team_ids": filter_on("repo"),
    },
)
