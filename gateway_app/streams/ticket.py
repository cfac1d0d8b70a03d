"""What Django has found out about a request for a stream, before the stream begins without it."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from gateway_app.access import caller_of
from gateway_app.streams import wire
from gateway_app.streams.notices import Wanted

TICKET = "drover.ticket"


@dataclass(frozen=True, slots=True)
class Subscriber:
    """By what somebody was let in, so that it can be asked again whether they still may."""

    tenant_id: int
    token_id: int | None
    session_key: str | None


@dataclass(frozen=True, slots=True)
class Listen:
    """To what happens; after an entry of the journal, or from now on."""

    guest: Subscriber
    wanted: Wanted
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Follow:
    """What a run prints; after a line, or from the first."""

    guest: Subscriber
    run_id: int
    after: int = -1
    styled: bool = False


Ticket = Listen | Follow


def subscriber_of(request: HttpRequest) -> Subscriber:
    caller = caller_of(request)
    session_key = None if caller.token_id else request.session.session_key
    return Subscriber(caller.tenant.pk, caller.token_id, session_key)


def begin(request: HttpRequest, ticket: Ticket) -> HttpResponse:
    """Without the door in front of Django this is a stream that ends at once."""
    scope: dict[str, Any] = getattr(request, "scope", {})
    scope[TICKET] = ticket
    response = HttpResponse(wire.opened(), content_type=wire.CONTENT_TYPE)
    # Proxies would keep events back until there are many.
    response["X-Accel-Buffering"] = "no"
    return response
