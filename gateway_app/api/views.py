"""Every view of /v1: the trace of a request, its body, and the errors 404 and 405 as JSON."""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast
from uuid import uuid4

import structlog
from django.core.exceptions import TooManyFieldsSent
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, path, re_path
from ninja import NinjaAPI
from structlog.contextvars import bound_contextvars

from agents_app.events import trace_id_of
from gateway_app.access import NOTHING_HERE, problem
from gateway_app.api.docs import asset
from gateway_app.api.fields import ISO_TIMES, TIMES

log = structlog.get_logger("drover.api")
View = Callable[..., HttpResponseBase]
LONGEST_PATH = 200
READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def api_urls(api: NinjaAPI) -> list[URLPattern | URLResolver]:
    """The last pattern matches every address below /v1, so it must come after all others."""
    patterns, app_name, namespace = api.urls
    for pattern in patterns:
        assert isinstance(pattern, URLPattern)
        pattern.callback = api_view(pattern.callback)
    return [
        path("v1/docs/<str:name>", api_view(asset)),
        path("v1/", (patterns, app_name, namespace)),
        # Any character: an address may contain a line break.
        re_path(r"^v1(?:/[\s\S]*)?$", api_view(_nothing_here)),
    ]


def api_view(view: View) -> View:
    @wraps(view)
    def respond(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        trace_id = trace_id_of(request.headers.get("traceparent")) or uuid4().hex
        request.trace_id = trace_id  # type: ignore[attr-defined]
        with bound_contextvars(trace_id=trace_id):
            response = _respond(view, request, *args, **kwargs)
            _log_response(request, response.status_code)
        return response

    return respond


def trace_of(request: HttpRequest) -> str:
    """The trace id that the caller sent, else a new one; work that the request causes has it."""
    return cast("str", request.trace_id)  # type: ignore[attr-defined]


def _respond(view: View, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
    try:
        # Read first, or a form would be parsed; asgi/body_limit.py limits the size.
        _ = request.body
        response = _refuse_other_times(request) or view(request, *args, **kwargs)
    except Http404:
        response = problem(404, "not_found", NOTHING_HERE)
    if response.status_code == HttpResponseNotAllowed.status_code:
        response = _not_allowed(request, response)
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def _refuse_other_times(request: HttpRequest) -> HttpResponse | None:
    try:
        asked = request.GET.get(TIMES, ISO_TIMES)
    except TooManyFieldsSent:
        return None  # the operation answers that
    if asked in {ISO_TIMES, "epoch"}:
        return None
    return problem(400, "invalid", f"times: {asked[:80]!r} is not known: use iso or epoch")


def _not_allowed(request: HttpRequest, response: HttpResponseBase) -> HttpResponse:
    allowed = response.headers.get("Allow", "")
    message = f"{request.method} is not allowed here: use {allowed}"
    answer = problem(response.status_code, "method_not_allowed", message)
    answer["Allow"] = allowed
    return answer


def _nothing_here(_request: HttpRequest) -> HttpResponseBase:
    raise Http404


_nothing_here.csrf_exempt = True  # type: ignore[attr-defined]


def _log_response(request: HttpRequest, status: int) -> None:
    """Requests that only read are logged at the level of debugging."""
    caller = getattr(request, "auth", None)
    write = log.debug if request.method in READING_METHODS else log.info
    write(
        "api.answered",
        method=request.method,
        path=request.path[:LONGEST_PATH],
        status=status,
        tenant_id=caller.tenant.pk if caller else None,
        by=caller.by if caller else None,
    )
