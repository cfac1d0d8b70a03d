"""A request whose length can be read in two ways is refused: a proxy may read the other one.

What is the rest of a body to one of them is a request of its own to the other, with the rights of
whoever uses the connection next.
"""

from gateway_app.asgi.answers import Answer
from gateway_app.asgi.body import App, Message, Receive, Send

_LENGTHS = frozenset({b"content-length", b"transfer-encoding"})


class OneLength:
    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and {name for name, _ in scope["headers"]} >= _LENGTHS:
            await ambiguous().send(receive, send)
        else:
            await self.app(scope, receive, send)


def ambiguous() -> Answer:
    message = "a request has either a Content-Length or a Transfer-Encoding"
    return Answer(400, {"error": {"code": "bad_body", "message": message}}, hang_up=True)
