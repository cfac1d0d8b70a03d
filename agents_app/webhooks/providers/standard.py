"""Standard Webhooks: several signatures in one header, over id, timestamp and body."""

import base64
import hmac
from collections.abc import Callable
from datetime import datetime
from typing import Any

from agents_app.webhooks.providers import ed25519
from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import filter_on
from agents_app.webhooks.providers.provider import Provider, id_in_header
from agents_app.webhooks.providers.reading import as_text, dig, iso, text
from agents_app.webhooks.providers.signing import (
    MAX_SIGNATURES,
    Headers,
    Secrets,
    Signed,
    is_fresh,
    mac,
    matching,
    raw,
)

SYMMETRIC, PUBLIC = "whsec_", "whpk_"

SignatureCheck = Callable[[str, bytes], bool]


def verify(request: Signed, secrets: Secrets, now: datetime) -> str | None:
    identity, sent = request.header("webhook-id"), request.header("webhook-timestamp")
    message = b".".join((raw(identity), raw(sent), request.body))
    given = [part.partition(",") for part in request.header("webhook-signature").split(" ")]
    signatures = [(version, value) for version, _, value in given[:MAX_SIGNATURES]]
    signer = matching(secrets, lambda secret: _signs(secret, message, signatures))
    return signer if identity and is_fresh(sent, now) else None


def stand_in(secret: str) -> str:
    """Of the same kind: a signature with a public key takes many times as long."""
    kind = PUBLIC if secret.startswith(PUBLIC) else SYMMETRIC
    return kind + base64.b64encode(ed25519.STAND_IN_KEY).decode()


def _signs(secret: str, message: bytes, signatures: list[tuple[str, str]]) -> bool:
    version, is_valid = (
        _public(secret) if secret.startswith(PUBLIC) else _symmetric(secret, message)
    )
    found = False
    for name, value in signatures:  # all, so that the time does not reveal which one is valid
        found |= name == version and is_valid(value, message)
    return found


def _public(secret: str) -> tuple[str, SignatureCheck]:
    key = _decoded(secret.removeprefix(PUBLIC)) or b""
    return "v1a", lambda value, message: ed25519.verify(key, _decoded(value) or b"", message)


def _symmetric(secret: str, message: bytes) -> tuple[str, SignatureCheck]:
    text = secret.removeprefix(SYMMETRIC)
    key = _decoded(text) or raw(text)
    expected = mac(key, message, "base64")
    # An empty key is not secret.
    return "v1", lambda value, _: hmac.compare_digest(expected, raw(value)) and bool(key)


def _decoded(value: str) -> bytes | None:
    try:
        return base64.b64decode(raw(value), validate=True)
    except ValueError:
        return None


def parse(headers: Headers, payload: Any, received_at: datetime) -> Context | None:
    del headers
    event = text(payload, "type")
    if not event:
        return None
    data = dig(payload, "data")
    return Context(
        source="standard",
        event=event,
        title=event,
        body=as_text(data) if data else None,
        timestamp=text(payload, "timestamp") or iso(received_at),
    )


STANDARD = Provider(
    name="standard",
    verify=verify,
    stand_in=stand_in,
    delivery_id=id_in_header("webhook-id"),
    parse=parse,
    filters={"events": filter_on("event")},
)
