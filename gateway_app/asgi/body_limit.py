"""Bodies for Django, counted before it sees them: it would spool any length of them to disk."""

from gateway_app.asgi.answers import bad_body
from gateway_app.asgi.body import App, Body, BodyError, Budget, Gone, Message, Receive, Send

MEGABYTE = 1_000_000
API = "/v1/"
API_BYTES = MEGABYTE
# What people send with a form of the admin; Django itself keeps so much of it in memory.
FORM_BYTES = 2_500_000
# Together; webhooks have a budget of their own, which nobody here can use up.
ALL_BYTES = 32 * MEGABYTE
_BODY_HEADERS = (b"content-length", b"transfer-encoding")


class Bounded:
    def __init__(self, app: App, body_seconds: float, budget: Budget | None = None) -> None:
        self.app = app
        self.body_seconds = body_seconds
        self.budget = budget or Budget(ALL_BYTES)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not has_body(scope):
            await self.app(scope, receive, send)
            return
        body = Body(receive, limit_of(scope["path"]), self.budget)
        try:
            whole = await body.read(announced(scope), self.body_seconds)
            await self.app(scope, handed_on(whole, receive), send)
        except BodyError as error:
            await bad_body(error).send(receive, send)
        except Gone:
            return
        finally:
            body.close()


def has_body(scope: Message) -> bool:
    """By HTTP/1.1 one of these announces it; without them there is nothing to wait for."""
    return any(name in _BODY_HEADERS and value != b"0" for name, value in scope["headers"])


def announced(scope: Message) -> str:
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    return lengths[-1].decode("latin-1") if lengths else ""


def limit_of(path: str) -> int:
    return API_BYTES if f"{path}/".startswith(API) else FORM_BYTES


def handed_on(body: bytes, receive: Receive) -> Receive:
    """The body in one piece, then what the server says: that the client has hung up."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message
