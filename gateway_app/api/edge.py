"""What holds for every request to /v1 before and after its operation: method, address."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, path, re_path
from ninja import NinjaAPI

from gateway_app.access import problem
from gateway_app.api.docs import asset
from gateway_app.api.tracing import traced

View = Callable[..., HttpResponseBase]


def api_urls(api: NinjaAPI) -> list[URLPattern | URLResolver]:
    """The last one takes every other address below /v1, so it belongs behind all others."""
    patterns, app_name, namespace = api.urls
    for pattern in patterns:
        assert isinstance(pattern, URLPattern)
        pattern.callback = guarded(pattern.callback)
    return [
        path("v1/docs/<str:name>", guarded(asset)),
        path("v1/", (patterns, app_name, namespace)),
        # Any character: a line's end may stand in an address, too.
        re_path(r"^v1(?:/[\s\S]*)?$", guarded(_nothing_here)),
    ]


def guarded(view: View) -> View:
    @wraps(view)
    def guard(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            # Before anything else may take it for a form; asgi/body_limit.py counts it.
            _ = request.body
            response = view(request, *args, **kwargs)
        except Http404:
            message = "there is nothing at this address (/v1/docs lists what is)"
            response = problem(404, "not_found", message)
        if response.status_code == HttpResponseNotAllowed.status_code:
            response = _not_allowed(request, response)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return traced(guard)


def _not_allowed(request: HttpRequest, response: HttpResponseBase) -> HttpResponse:
    allowed = response.headers.get("Allow", "")
    message = f"{request.method} means nothing here: use {allowed}"
    answer = problem(response.status_code, "method_not_allowed", message)
    answer["Allow"] = allowed
    return answer


def _nothing_here(_request: HttpRequest) -> HttpResponseBase:
    raise Http404


_nothing_here.csrf_exempt = True  # type: ignore[attr-defined]
