"""Stripe: signatures with their time in one header, the event and its id in the body."""

from datetime import UTC, datetime
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import filter_on
from agents_app.webhooks.providers.provider import MEGABYTE, Provider, usable_id
from agents_app.webhooks.providers.reading import as_text, dig, first, iso, read_json, text, whole
from agents_app.webhooks.providers.signing import (
    Headers,
    Secrets,
    Signed,
    is_fresh,
    raw,
    signed_by_any_mac,
)

# A time far in the future that datetime can represent.
LATEST_SECONDS = 32_503_680_000


def verify(request: Signed, secrets: Secrets, now: datetime) -> str | None:
    """`t=TIME,v1=SIGNATURE,...`: several signatures while a secret changes, `v0` for tests only."""
    parts = [part.partition("=") for part in request.header("stripe-signature").split(",")]
    sent = next((value for key, _, value in parts if key.strip() == "t"), "")
    signatures = [value for key, _, value in parts if key.strip() == "v1"]
    message = raw(sent) + b"." + request.body
    signer = signed_by_any_mac(secrets, message, signatures)
    return signer if is_fresh(sent, now) else None


def delivery_id(headers: Headers, body: bytes) -> str:
    """The id of the event: another attempt has the same one and a new signature."""
    del headers
    return usable_id(text(read_json(body), "id"), body)


def parse(headers: Headers, payload: Any, received_at: datetime) -> Context | None:
    """Events of version 2 name the object in `related_object` and have no `data`."""
    del headers
    event = text(payload, "type")
    if not event or text(payload, "object") not in {"event", "v2.core.event"}:
        return None
    subject, related = dig(payload, "data", "object"), dig(payload, "related_object")
    described = subject or related
    account = first(text(payload, "account"), text(payload, "context"))
    return Context(
        source="stripe",
        event=event,
        action=event.rpartition(".")[2],
        title=_title(event, text(described, "id")),
        body=as_text(described) if described else None,
        repo=account or "",
        labels=("live",) if dig(payload, "livemode") is True else ("test",),
        conclusion=text(subject, "status"),
        sender="stripe",
        timestamp=_created(payload) or iso(received_at),
    )


def _title(event: str, identity: str | None) -> str:
    return f"{event} {identity}" if identity else event


def _created(payload: Any) -> str | None:
    """Seconds, or a text in events of version 2."""
    seconds = whole(payload, "created")
    if seconds is None or not 0 <= seconds < LATEST_SECONDS:
        return text(payload, "created")
    return iso(datetime.fromtimestamp(seconds, UTC))


STRIPE = Provider(
    name="stripe",
    verify=verify,
    delivery_id=delivery_id,
    parse=parse,
    parses_early=True,
    body_limit_bytes=MEGABYTE,
    filters={
        "events": filter_on("event"),
        "accounts": filter_on("repo"),
        "modes": filter_on("labels"),
        "statuses": filter_on("conclusion"),
    },
)
