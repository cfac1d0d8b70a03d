"""Authorized requests for streams, handed from Django to the middleware in the ASGI scope."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from gateway_app.access import caller_of
from gateway_app.streams import sse
from gateway_app.streams.journal_filter import JournalFilter

SCOPE_KEY = "drover.stream_request"


@dataclass(frozen=True, slots=True)
class Subscriber:
    """The token or session of a client; its rights are checked again while a stream is open."""

    tenant_id: int
    token_id: int | None
    session_key: str | None


@dataclass(frozen=True, slots=True)
class NotificationRequest:
    """Journal entries after the entry `after`; None: from now on."""

    subscriber: Subscriber
    wanted: JournalFilter
    after: int | None = None


@dataclass(frozen=True, slots=True)
class OutputRequest:
    """Lines of a run after the line `after`; -1: from the first line on."""

    subscriber: Subscriber
    run_id: int
    after: int = -1
    styled: bool = False
    iso_times: bool = False


StreamRequest = NotificationRequest | OutputRequest


def subscriber_of(request: HttpRequest) -> Subscriber:
    caller = caller_of(request)
    session_key = None if caller.token_id else request.session.session_key
    return Subscriber(caller.tenant.pk, caller.token_id, session_key)


def start_stream(request: HttpRequest, wanted: StreamRequest) -> HttpResponse:
    """The head of the response; without the middleware the stream ends after its first event."""
    scope: dict[str, Any] = getattr(request, "scope", {})
    scope[SCOPE_KEY] = wanted
    response = HttpResponse(sse.opened(), content_type=sse.CONTENT_TYPE)
    # Without it, a proxy would buffer events.
    response["X-Accel-Buffering"] = "no"
    return response
