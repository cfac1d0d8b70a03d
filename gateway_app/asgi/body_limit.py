"""Middleware that checks the body of a request before Django reads it: its framing and its size."""

from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway_app.asgi.body import MEGABYTE, Body, BodyBudget, BodyError
from gateway_app.asgi.responses import GatewayResponse, body_error_response, error_response

Refuse = Callable[[Scope], Awaitable[GatewayResponse | None]]
API_BYTES = MEGABYTE
# Forms of the admin; Django itself keeps so much of a body in memory.
FORM_BYTES = 2_500_000
# The form of the login, and all requests of clients that are not logged in.
ANONYMOUS_BYTES = 16 * 1024
ADMIN, LOGIN = "/admin/", "/admin/login/"
# For all requests together; webhooks have a budget of their own, which these cannot use up.
ALL_LARGE_BYTES, ALL_SMALL_BYTES = 32 * MEGABYTE, 16 * MEGABYTE
_LENGTHS = frozenset({b"content-length", b"transfer-encoding"})


class FramingCheck:
    """Refuses a request with two lengths, of which a proxy may use the other one.

    The proxy would then take the rest of the body for another request, with the rights of the
    client that uses the connection next.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.app
        if scope["type"] == "http" and {name for name, _ in scope["headers"]} >= _LENGTHS:
            message = "send either a Content-Length or a Transfer-Encoding, not both"
            app = error_response(400, "bad_body", message, close_connection=True)
        await app(scope, receive, send)


class BodyLimit:
    """Reads the body in front of Django, which would write one of any length to disk.

    `refuse` may return a response, before anything is read of a body. `client_of` names the client,
    which has a share of the memory for bodies."""

    def __init__(
        self,
        app: ASGIApp,
        body_seconds: float,
        budget: BodyBudget | None = None,
        refuse: Refuse | None = None,
        client_of: Callable[[Scope], str] = lambda _: "",
    ) -> None:
        self.app = app
        self.body_seconds = body_seconds
        self.refuse = refuse
        self.client_of = client_of
        self.budget = budget or BodyBudget(ALL_LARGE_BYTES, ALL_SMALL_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(raw=scope["headers"]) if scope["type"] == "http" else Headers()
        if not has_body(headers):
            await self.app(scope, receive, send)
            return
        if self.refuse and (refusal := await self.refuse(scope)):
            await refusal(scope, receive, send)
            return
        body = Body(receive, limit_of(scope["path"]), self.budget, self.client_of(scope))
        try:
            content = await body.read(headers.get("content-length", ""), self.body_seconds)
            await self.app(scope, receive_body(content, receive), send)
        except BodyError as error:
            await body_error_response(error)(scope, receive, send)
        except ClientDisconnect:
            return
        finally:
            body.close()


def has_body(headers: Headers) -> bool:
    """In HTTP/1.1 a body is announced by one of two headers."""
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def limit_of(path: str) -> int:
    """For a client that `refuse` has let pass."""
    if is_api_path(path):
        return API_BYTES
    return FORM_BYTES if path.startswith(ADMIN) and path != LOGIN else ANONYMOUS_BYTES


def is_api_path(path: str) -> bool:
    return f"{path}/".startswith("/v1/")


def receive_body(body: bytes, receive: Receive) -> Receive:
    """Returns the body in one message, then the messages of the server, such as a disconnect."""
    unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return unread.pop() if unread else await receive()

    return next_message
