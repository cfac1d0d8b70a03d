"""What holds for every request to /v1 before and after its operation: size, method, address."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, path, re_path
from ninja import NinjaAPI

from gateway_app.api.docs import asset
from gateway_app.api.problems import TooLarge, problem
from gateway_app.api.tracing import traced

LARGEST_BODY = 1_000_000
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
            _refuse_large(request)
            response = view(request, *args, **kwargs)
        except TooLarge as error:
            response = problem(error.http_status, error.code, str(error))
        except Http404:
            message = "there is nothing at this address (/v1/docs lists what is)"
            response = problem(404, "not_found", message)
        if response.status_code == HttpResponseNotAllowed.status_code:
            response = _not_allowed(request, response)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return traced(guard)


def _refuse_large(request: HttpRequest) -> None:
    """Also reads the body, before anything else may take it for a form."""
    message = f"the body has more than {LARGEST_BODY} bytes"
    declared = str(request.META.get("CONTENT_LENGTH") or 0)
    if declared.isdecimal() and int(declared) > LARGEST_BODY:
        raise TooLarge(message)
    try:
        size = len(request.body)
    except RequestDataTooBig:
        raise TooLarge(message) from None
    # One that is sent in chunks does not say how long it is.
    if size > LARGEST_BODY:
        raise TooLarge(message)


def _not_allowed(request: HttpRequest, response: HttpResponseBase) -> HttpResponse:
    allowed = response.headers.get("Allow", "")
    message = f"{request.method} means nothing here: use {allowed}"
    answer = problem(response.status_code, "method_not_allowed", message)
    answer["Allow"] = allowed
    return answer


def _nothing_here(_request: HttpRequest) -> HttpResponseBase:
    raise Http404


_nothing_here.csrf_exempt = True  # type: ignore[attr-defined]
