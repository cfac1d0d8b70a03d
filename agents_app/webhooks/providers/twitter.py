"""X (Twitter): HMAC over the body, in base64; X confirms an address with a token to be signed."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import filter_on
from agents_app.webhooks.providers.provider import MEGABYTE, Provider
from agents_app.webhooks.providers.reading import first, iso, text
from agents_app.webhooks.providers.signing import (
    Headers,
    Secrets,
    Signed,
    body_hash,
    mac,
    raw,
    signed_by_mac,
)

PREFIX = "sha256="
_TOKEN = re.compile(r"[A-Za-z0-9+/=_.~-]{1,200}")


def verify(request: Signed, secrets: Secrets, now: datetime) -> str | None:
    """Refuses a body that is only a token: `confirm` gives its signature to any client."""
    del now
    if _TOKEN.fullmatch(request.body.decode("latin-1")):
        return None
    given = request.header("x-twitter-webhooks-signature")
    return signed_by_mac(secrets, request.body, given, prefix=PREFIX, encoding="base64")


def confirm(query: Mapping[str, str], secrets: Secrets) -> dict[str, Any] | None:
    """Signs the token of X, which X sends when an address is registered and every hour.

    Any client can send a token and gets its signature, and deliveries are signed the same way: so
    only text that cannot be a delivery is signed."""
    token = query.get("crc_token", "")
    secret = next(filter(None, secrets.values()), "")
    if not (secret and _TOKEN.fullmatch(token)):
        return None
    return {"response_token": PREFIX + mac(raw(secret), raw(token), "base64").decode()}


def parse(headers: Headers, payload: Any, received_at: datetime) -> Context | None:
    """A delivery holds one list, named after the event; its first entry is described."""
    del headers
    if not isinstance(payload, dict):
        return None
    event = next((name for name, value in payload.items() if isinstance(value, list)), None)
    if not event:
        return None
    entry = payload[event][0] if payload[event] else None
    return Context(
        source="twitter",
        event=text(event) or "unknown",
        title=text(event),
        body=text(entry, "text"),
        repo=text(payload, "for_user_id") or "unknown",
        sender=first(text(entry, "user", "screen_name"), text(entry, "source", "screen_name"))
        or "unknown",
        timestamp=iso(received_at),
    )


TWITTER = Provider(
    name="twitter",
    verify=verify,
    delivery_id=lambda headers, body: body_hash(body),  # noqa: ARG005
    parse=parse,
    body_limit_bytes=MEGABYTE,
    confirm=confirm,
    filters={"events": filter_on("event"), "users": filter_on("repo")},
)
