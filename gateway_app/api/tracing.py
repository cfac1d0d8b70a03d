"""Whose story a request to /v1 belongs to: its trace id is in every log line about it."""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast
from uuid import uuid4

import structlog
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from structlog.contextvars import bound_contextvars

from agents_app.events import trace_id_of

log = structlog.get_logger("drover.api")
View = Callable[..., HttpResponseBase]
LONGEST_PATH = 200
ONLY_LOOKS = frozenset({"GET", "HEAD", "OPTIONS"})


def trace_of(request: HttpRequest) -> str:
    """The caller's own, if it sent one; what it asks for goes on under it."""
    return cast("str", request.trace_id)  # type: ignore[attr-defined]


def traced(view: View) -> View:
    @wraps(view)
    def trace(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        trace_id = trace_id_of(request.headers.get("traceparent")) or uuid4().hex
        request.trace_id = trace_id  # type: ignore[attr-defined]
        with bound_contextvars(trace_id=trace_id):
            response = view(request, *args, **kwargs)
            _log(request, response.status_code)
        return response

    return trace


def _log(request: HttpRequest, status: int) -> None:
    """Who only looks is not worth a line, unless somebody wants to know."""
    caller = getattr(request, "auth", None)
    tell = log.debug if request.method in ONLY_LOOKS else log.info
    tell(
        "api.answered",
        method=request.method,
        path=request.path[:LONGEST_PATH],
        status=status,
        tenant_id=caller.tenant.pk if caller else None,
        by=caller.by if caller else None,
    )
