"""Server-Sent Events as bytes; pure."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agents_app.clock import iso

CONTENT_TYPE = "text/event-stream"
HEARTBEAT = b": heartbeat\n\n"


def event(name: str, data: Mapping[str, Any], key: int | None = None) -> bytes:
    """`key` is the id after which a client resumes; JSON has no line ends, so data is one line."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    last = "" if key is None else f"id: {key}\n"
    return f"event: {name}\ndata: {text}\n{last}\n".encode()


def time(at: datetime | None, *, iso_times: bool) -> int | str | None:
    """Whole seconds since 1970, or the same as ISO 8601 text."""
    if at is None:
        return None
    return iso(at.replace(microsecond=0)) if iso_times else int(at.timestamp())


def opened(key: int | None = None) -> bytes:
    return event("open", {"ok": True}, key)


def _error(code: str, message: str) -> bytes:
    return event("error", {"error": message, "error_code": code})


SLOW = _error("slow_consumer", "notification stream backlog exceeded; reconnect")
UNAUTHORIZED = _error("unauthorized", "missing or invalid bearer token")
TENANT_DISABLED = _error("tenant_disabled", "the tenant is disabled")
GONE = _error("not_found", "there is no such run")
