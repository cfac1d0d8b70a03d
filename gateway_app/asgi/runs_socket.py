"""The door that runs have: their signals and a sign of life, nothing else of the gateway."""

import json
from typing import Any

from gateway_app.asgi.body import Message, Receive, Send

SIGNALS = "/v1/signals/"
# A socket in the file system has no addresses, and those who log or count them want some.
LOOPBACK = {"client": ("127.0.0.1", 0), "server": ("localhost", 80)}
_MESSAGE = f"this socket is for runs: {SIGNALS}* and /healthz"
_NOTHING_HERE = json.dumps({"error": {"code": "not_found", "message": _MESSAGE}}).encode()
_HEADERS = [
    (b"content-type", b"application/json"),
    (b"content-length", str(len(_NOTHING_HERE)).encode()),
    (b"connection", b"close"),
]


class SignalsOnly:
    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path.startswith(SIGNALS) or path == "/healthz":
            await self.app({**scope, **LOOPBACK}, receive, send)
            return
        await send({"type": "http.response.start", "status": 404, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": _NOTHING_HERE})
