"""Checks before the start of the processes: project and ports."""

import errno
import os
import socket
from collections.abc import Mapping
from pathlib import Path

from agents_app.conf import Conf
from agents_app.errors import ConfigError


def ensure_project(project: Path) -> None:
    if not project.is_dir():
        raise ConfigError(
            f"the project directory {project} does not exist. "
            "Create it, or set DROVER_PROJECT to the directory that contains agents/."
        )


def choose_ports(conf: Conf, env: Mapping[str, str]) -> dict[str, str]:
    """The ports as environment variables for the children; 0 means any free port.

    If Flower's default port is in use, another one is chosen; a port that was set must be free.
    """
    ports = {"DROVER_PORT": str(_usable_port(conf.port, "DROVER_PORT"))}
    if not conf.flower:
        return ports
    flower_port = conf.flower_port
    if not env.get("DROVER_FLOWER_PORT") and _bind(flower_port):
        flower_port = 0
    return ports | {"DROVER_FLOWER_PORT": str(_usable_port(flower_port, "DROVER_FLOWER_PORT"))}


def _usable_port(port: int, variable: str) -> int:
    if port == 0:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            return int(listener.getsockname()[1])
    problem = _bind(port)
    if problem == errno.EADDRINUSE:
        raise ConfigError(f"port {port} is in use. Set {variable} to a free port.")
    if problem:
        raise ConfigError(f"port {port}: {os.strerror(problem)}. Set {variable} to another port.")
    return port


def _bind(port: int) -> int:
    """0 if the port can be bound, else the error number."""
    with socket.socket() as listener:
        # As the servers do: connections in TIME_WAIT must not block the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            return error.errno or errno.EINVAL
    return 0
