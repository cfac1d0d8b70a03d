"""Shared by the streams of the API: their OpenAPI description, and where a client resumes."""

from typing import Any

from django.http import HttpRequest

from gateway_app.access import Invalid
from gateway_app.api.fields import LARGEST_KEY

_HEADER = "Last-Event-ID"


def streamed(description: str) -> dict[str, Any]:
    """The part of the OpenAPI document that Django Ninja cannot derive."""
    content = {"text/event-stream": {"schema": {"type": "string"}}}
    header = {
        "in": "header",
        "name": _HEADER,
        "required": False,
        "description": "The `id` of the last event that was read; the stream continues after it.",
        "schema": {"type": "string", "pattern": "^[0-9]{1,18}$"},
    }
    return {
        "parameters": [header],
        "responses": {200: {"description": description, "content": content}},
    }


def last_event_id(request: HttpRequest, from_query: int | None) -> int | None:
    """The header takes precedence: a browser that reconnects repeats the old address."""
    text = request.headers.get(_HEADER, "").strip()
    if not text:
        return from_query
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= LARGEST_KEY):
        raise Invalid(f"{_HEADER}: {text[:80]!r} is not the id of an event of this stream")
    return int(text)
