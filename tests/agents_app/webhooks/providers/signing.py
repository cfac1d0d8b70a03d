"""Requests signed as the documentation of each provider says, without code of Drover."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agents_app.webhooks.providers import Signed

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECRET = "s3cret"
SEED = bytes(range(32))


def body_of(payload: Any) -> bytes:
    return json.dumps(payload).encode()


def hmac_hex(secret: str, message: bytes) -> str:
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def hmac_base64(secret: bytes, message: bytes) -> str:
    return base64.b64encode(hmac.new(secret, message, hashlib.sha256).digest()).decode()


def stamp(seconds_ago: float = 0) -> str:
    return str(int(NOW.timestamp() - seconds_ago))


def ed25519_public(seed: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def ed25519_sign(seed: bytes, message: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(seed).sign(message)


def slack(body: bytes, secret: str = SECRET, sent: str | None = None) -> Signed:
    sent = stamp() if sent is None else sent
    signature = "v0=" + hmac_hex(secret, b"v0:" + sent.encode() + b":" + body)
    return Signed({"x-slack-request-timestamp": sent, "x-slack-signature": signature}, body)


def discord(body: bytes, seed: bytes = SEED, sent: str | None = None) -> Signed:
    sent = stamp() if sent is None else sent
    signature = ed25519_sign(seed, sent.encode() + body).hex()
    return Signed({"x-signature-timestamp": sent, "x-signature-ed25519": signature}, body)


def standard(body: bytes, key: bytes, sent: str | None = None, identity: str = "msg_1") -> Signed:
    sent = stamp() if sent is None else sent
    signature = hmac_base64(key, f"{identity}.{sent}.".encode() + body)
    headers = {"webhook-id": identity, "webhook-timestamp": sent}
    return Signed({**headers, "webhook-signature": f"v1,{signature}"}, body)


def stripe(body: bytes, secret: str = SECRET, sent: str | None = None) -> Signed:
    sent = stamp() if sent is None else sent
    signature = hmac_hex(secret, f"{sent}.".encode() + body)
    return Signed({"stripe-signature": f"t={sent},v1={signature},v0=6ffbb59b2300"}, body)


def plain(provider: str, body: bytes, secret: str = SECRET) -> Signed:
    """For providers that sign only the body."""
    header, prefix = {
        "github": ("x-hub-signature-256", "sha256="),
        "sentry": ("sentry-hook-signature", ""),
        "linear": ("linear-signature", ""),
        "mintlify": ("mintlify-signature", ""),
        "generic": ("x-signature", ""),
        "jira": ("x-hub-signature", "sha256="),
        "pagerduty": ("x-pagerduty-signature", "v1="),
        "grafana": ("x-grafana-alerting-signature", ""),
        "alertmanager": ("x-grafana-alerting-signature", ""),
    }[provider]
    return Signed({header: prefix + hmac_hex(secret, body)}, body)


def signed(provider: str, body: bytes, secret: str = SECRET) -> Signed:
    match provider:
        case "slack":
            return slack(body, secret)
        case "stripe":
            return stripe(body, secret)
        case "standard" | "gitlab":
            return standard(body, secret.encode())
        case "twitter":
            signature = "sha256=" + hmac_base64(secret.encode(), body)
            return Signed({"x-twitter-webhooks-signature": signature}, body)
    return plain(provider, body, secret)
