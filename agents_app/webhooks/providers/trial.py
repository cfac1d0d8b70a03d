"""The provider `test`, for trying an agent: checks no signature, so it must be enabled."""

from datetime import datetime
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import filter_on
from agents_app.webhooks.providers.provider import MEGABYTE, Provider
from agents_app.webhooks.providers.reading import iso, items, text, texts, whole
from agents_app.webhooks.providers.signing import Headers, Secrets, Signed, body_hash

_TEXTS = ("action", "title", "body", "url", "author", "assignee", "branch", "conclusion", "comment")


def verify(request: Signed, secrets: Secrets, now: datetime) -> str | None:
    del request, secrets, now
    return "test"


def parse(headers: Headers, payload: Any, received_at: datetime) -> Context | None:
    del headers
    if not isinstance(payload, dict):
        return None
    texts_by_name: dict[str, Any] = {name: text(payload, name) for name in _TEXTS}
    return Context(
        source="test",
        event=text(payload, "event") or "test",
        repo=text(payload, "repo") or "",
        number=whole(payload, "number"),
        labels=texts(items(payload, "labels")) if "labels" in payload else None,
        sender=text(payload, "sender") or "test",
        timestamp=text(payload, "timestamp") or iso(received_at),
        **texts_by_name,
    )


TRIAL = Provider(
    name="test",
    verify=verify,
    delivery_id=lambda headers, body: body_hash(body),  # noqa: ARG005
    parse=parse,
    body_limit_bytes=MEGABYTE,
    signs_body=False,
    filters={
        "events": filter_on("event"),
        "actions": filter_on("action"),
        "repos": filter_on("repo"),
    },
)
