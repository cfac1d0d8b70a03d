"""The application behind the socket of runs: signals and the health check, nothing else."""

import socket
import struct

from starlette.types import ASGIApp, Receive, Scope, Send

from gateway_app.asgi.responses import error_response

SIGNALS_PATH = "/v1/signals/"
HEALTH = "/healthz"
# The key of a scope that came through this socket; a header cannot set it. The value is the number
# of the user whose process has connected.
RUN_SOCKET_USER = "drover.run_socket_user"
# A Unix socket has no addresses, but logging and rate limits read them.
LOOPBACK = {"client": ("127.0.0.1", 0), "server": ("localhost", 80)}
_PEER_CREDENTIALS = struct.Struct("iII")  # process, user, group
_NOT_FOUND = error_response(
    404,
    "not_found",
    f"this socket is for runs: {SIGNALS_PATH}* and {HEALTH}",
    {"connection": "close"},
)


def peer_user(connection: socket.socket) -> int:
    """The user of the process that has connected, as the kernel knows it."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
    _, user, _ = _PEER_CREDENTIALS.unpack(found)
    return int(user)


class RunSocketApp:
    """The application for one connection."""

    def __init__(self, app: ASGIApp, connection: socket.socket) -> None:
        self.app = app
        self.connection = connection

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path.startswith(SIGNALS_PATH) or path == HEALTH:
            added = {**LOOPBACK, RUN_SOCKET_USER: peer_user(self.connection)}
            await self.app({**scope, **added}, receive, send)
        else:
            await _NOT_FOUND(scope, receive, send)
