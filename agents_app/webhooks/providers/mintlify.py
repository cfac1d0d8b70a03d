"""Mintlify: no public description of its signatures, so header and format can be set."""

from datetime import datetime
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import filter_on
from agents_app.webhooks.providers.options import SignatureOptions
from agents_app.webhooks.providers.provider import MEGABYTE, Provider
from agents_app.webhooks.providers.reading import cut, first, iso, text
from agents_app.webhooks.providers.signing import Headers, body_hash

HEADERS = ("x-mintlify-signature", "mintlify-signature")
_CONCLUSIONS = {
    "failed": "failure",
    "failure": "failure",
    "succeeded": "success",
    "success": "success",
}


def parse(headers: Headers, payload: Any, received_at: datetime) -> Context | None:
    del headers
    action = first(text(payload, "action"), text(payload, "status"))
    if not action:
        return None
    return Context(
        source="mintlify",
        event=text(payload, "event") or "build",
        action=action,
        repo=first(text(payload, "project"), text(payload, "organization")) or "unknown",
        sender=first(text(payload, "user", "email"), text(payload, "user", "name")) or "mintlify",
        timestamp=text(payload, "timestamp") or iso(received_at),
        title=text(payload, "title") or f"Build {action}",
        body=_body(payload, action),
        url=first(text(payload, "url"), text(payload, "build_url")),
        branch=first(text(payload, "branch"), text(payload, "git", "branch")) or "main",
        conclusion=_CONCLUSIONS.get(action),
    )


def _body(payload: Any, action: str) -> str | None:
    error = text(payload, "error")
    if error and _CONCLUSIONS.get(action) == "failure":
        return cut(f"Build failed: {error}")
    return first(text(payload, "message"), error, text(payload, "description"))


def mintlify(signature: SignatureOptions) -> Provider:
    return Provider(
        name="mintlify",
        verify=signature.verify,
        delivery_id=lambda headers, body: body_hash(body),  # noqa: ARG005
        parse=parse,
        body_limit_bytes=MEGABYTE,
        filters={
            "events": filter_on("event"),
            "actions": filter_on("action"),
            "repos": filter_on("repo"),
            "branches": filter_on("branch", absent_passes=True),
        },
    )


MINTLIFY = mintlify(SignatureOptions(headers=HEADERS))
