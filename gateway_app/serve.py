"""The gateway on a port and a socket, as `up` starts it: `python -m gateway_app.serve HOST PORT`.

uvicorn's own command line takes one or the other.
"""

import fcntl
import os
import socket
import sys
from pathlib import Path

import structlog
import uvicorn

from agents_app.conf import CONF
from agents_app.errors import ConfigError
from agents_app.installation import (
    SOCKET_MODE,
    gateway_socket_path,
    open_private_file,
    socket_directory,
)
from gateway_app.asgi import GatewayProtocol

log = structlog.get_logger("drover.gateway")


class RunsDoor:
    """The socket, which one gateway of a data directory has at a time: the one with the lock."""

    def __init__(self, data: Path) -> None:
        self.path = gateway_socket_path(data)
        self._directory = socket_directory(data)
        self._lock = open_private_file(data / "gateway.lock")

    def open(self) -> socket.socket | None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        # With the lock ours, this can only be what a killed one left behind.
        self.path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(os.fspath(self.path))
        self.path.chmod(SOCKET_MODE)
        return listener

    def close(self) -> None:
        """A run that finds no socket tries the port; one that nobody serves would mislead it."""
        self.path.unlink(missing_ok=True)


class Gateway(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, door: RunsDoor | None) -> None:
        super().__init__(config)
        self.door = door

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.door:
            self.door.close()
        await super().shutdown(sockets)


def configured(host: str, port: int, proxies: tuple[str, ...]) -> uvicorn.Config:
    return uvicorn.Config(
        "scheduler_project.asgi:application",
        host=host,
        port=port,
        # An open event stream would keep it from stopping.
        timeout_graceful_shutdown=5,
        access_log=False,
        log_level="warning",
        ws="none",
        lifespan="off",
        server_header=False,
        http=GatewayProtocol,
        # Its default believes whatever anybody on this machine says of where it came from.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
    )


def serve(host: str, port: int, data: Path) -> int:
    config = configured(host, port, CONF.trusted_proxies)
    # The port first: whoever does not get it must leave the socket alone.
    sockets = [config.bind_socket()]
    config.load()
    door, listener = _open_door(data)
    if listener is not None:
        sockets.append(listener)
    gateway = Gateway(config, door if listener else None)
    gateway.run(sockets)
    return 0 if gateway.started else 3


def _open_door(data: Path) -> tuple[RunsDoor | None, socket.socket | None]:
    """The gateway serves without it, too: only runs without a network would miss it."""
    try:
        door = RunsDoor(data)
        listener = door.open()
    except (OSError, ConfigError) as error:
        log.warning("gateway.socket_failed", path=str(gateway_socket_path(data)), error=str(error))
        return None, None
    if listener is None:
        log.warning("gateway.socket_taken", path=str(door.path))
    elif not door.path.is_relative_to(data):
        log.info("gateway.socket_elsewhere", path=str(door.path), reason="the path is too long")
    return door, listener


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1], int(sys.argv[2]), CONF.data))
