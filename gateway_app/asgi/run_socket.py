"""The application behind the socket of runs: signals and the health check, nothing else."""

from starlette.types import ASGIApp, Receive, Scope, Send

from gateway_app.asgi.responses import error_response

SIGNALS_PATH = "/v1/signals/"
HEALTH = "/healthz"
# The key of a scope that came through this socket; a header cannot set it.
FROM_RUN_SOCKET = "drover.run_socket"
# A Unix socket has no addresses, but logging and rate limits read them.
LOOPBACK = {"client": ("127.0.0.1", 0), "server": ("localhost", 80), FROM_RUN_SOCKET: True}
_NOT_FOUND = error_response(
    404,
    "not_found",
    f"this socket is for runs: {SIGNALS_PATH}* and {HEALTH}",
    {"connection": "close"},
)


class RunSocketApp:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path.startswith(SIGNALS_PATH) or path == HEALTH:
            await self.app({**scope, **LOOPBACK}, receive, send)
        else:
            await _NOT_FOUND(scope, receive, send)
