"""The application behind the socket of runs: signals and the health check, nothing else."""

from starlette.types import ASGIApp, Receive, Scope, Send

from gateway_app.asgi.responses import error_response

SIGNALS = "/v1/signals/"
HEALTH = "/healthz"
# A Unix socket has no addresses, but logging and rate limits read them.
LOOPBACK = {"client": ("127.0.0.1", 0), "server": ("localhost", 80)}
_NOT_FOUND = error_response(
    404,
    "not_found",
    f"this socket is for runs: {SIGNALS}* and {HEALTH}",
    {"connection": "close"},
)


class RunSocketApp:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path.startswith(SIGNALS) or path == HEALTH:
            await self.app({**scope, **LOOPBACK}, receive, send)
        else:
            await _NOT_FOUND(scope, receive, send)
