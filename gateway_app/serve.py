"""Serves the gateway on a port and on the socket of runs: `python -m gateway_app.serve HOST PORT`.

The command line of uvicorn accepts a port or a socket, but not both.
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
    repair_permissions,
    socket_directory,
)
from gateway_app.asgi import GatewayProtocol

log = structlog.get_logger("drover.gateway")


class RunSocket:
    """The Unix socket for runs; only the gateway that holds gateway.lock of the data directory
    serves it."""

    def __init__(self, data: Path) -> None:
        self.path = gateway_socket_path(data)
        self._directory = socket_directory(data)
        self._lock = open_private_file(data / "gateway.lock")

    def open(self) -> socket.socket | None:
        """None if another gateway holds the lock."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        # While this process holds the lock, only a killed gateway can have left a socket behind.
        self.path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(os.fspath(self.path))
        self.path.chmod(SOCKET_MODE)
        return listener

    def close(self) -> None:
        """Removes the socket: a run uses the port only if there is no socket."""
        self.path.unlink(missing_ok=True)


class Gateway(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, run_socket: RunSocket | None) -> None:
        super().__init__(config)
        self.run_socket = run_socket

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.run_socket:
            self.run_socket.close()
        await super().shutdown(sockets)


def configured(host: str, port: int, proxies: tuple[str, ...]) -> uvicorn.Config:
    return uvicorn.Config(
        "scheduler_project.asgi:application",
        host=host,
        port=port,
        # Without a limit, an open event stream would keep the server from stopping.
        timeout_graceful_shutdown=5,
        access_log=False,
        log_level="warning",
        ws="none",
        lifespan="off",
        server_header=False,
        http=GatewayProtocol,
        # The default of uvicorn trusts the forwarding headers of every process on this machine.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
    )


def serve(host: str, port: int, data: Path) -> int:
    config = configured(host, port, CONF.trusted_proxies)
    # The port first: a gateway that cannot bind it must not replace the socket.
    sockets = [config.bind_socket()]
    config.load()
    run_socket, listener = _open_run_socket(data)
    if listener is not None:
        sockets.append(listener)
    gateway = Gateway(config, run_socket if listener else None)
    gateway.run(sockets)
    return 0 if gateway.started else 3


def _open_run_socket(data: Path) -> tuple[RunSocket | None, socket.socket | None]:
    """Without the socket the gateway serves the port alone; runs without a network cannot send
    signals then."""
    try:
        run_socket = RunSocket(data)
        listener = run_socket.open()
    except (OSError, ConfigError) as error:
        log.warning("gateway.socket_failed", path=str(gateway_socket_path(data)), error=str(error))
        return None, None
    if listener is None:
        log.warning("gateway.socket_taken", path=str(run_socket.path))
    elif not run_socket.path.is_relative_to(data):
        log.info(
            "gateway.socket_elsewhere", path=str(run_socket.path), reason="the path is too long"
        )
    return run_socket, listener


if __name__ == "__main__":
    repair_permissions(CONF)
    sys.exit(serve(sys.argv[1], int(sys.argv[2]), CONF.data))
