"""A private stack, or single processes of it, for tests from outside."""

import asyncio
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from agents_app.conf import ROOT, Conf, read_conf
from agents_app.installation import read_or_create_secret
from agents_app.stack import ONLY_FOR_UP, roles
from agents_app.stack.role import Role
from tests.parts import command_server
from tests.parts.ports import free_port
from tests.parts.processes import all_gone, stop_process, tree_of
from tests.parts.waiting import wait_for

Row = dict[str, Any]


class PrivateStack:
    """A stack with its own directories, database, Redis and ports; ends its processes."""

    def __init__(self, directory: Path, database_url: str = "", redis_url: str = "", **env: str):
        self.data = directory / "data"
        self.project = directory / "project"
        self.data.mkdir(parents=True, exist_ok=True)
        self.project.mkdir()
        # As `up` does before it starts processes: a test may start one of them before Redis.
        read_or_create_secret(self.data / "redis.password")
        self.database_url = database_url or f"sqlite:///{self.data}/drover.sqlite3"
        self.env = {
            **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
            "DJANGO_SETTINGS_MODULE": "scheduler_project.settings",
            "DROVER_DATA": str(self.data),
            "DROVER_PROJECT": str(self.project),
            "DROVER_PORT": str(free_port()),
            # Few tests use Flower, and it takes as long to start as all other processes.
            "DROVER_FLOWER": "no",
            "DROVER_FLOWER_PORT": str(free_port()),
            "DROVER_ADMIN_PASSWORD": "secret-for-tests",
            "DROVER_CONCURRENCY": "4",
            "DROVER_RECONCILE_SECONDS": "1",
            "DATABASE_URL": self.database_url,
            **({"REDIS_URL": redis_url} if redis_url else {}),
            **env,
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._commands = 0

    @property
    def conf(self) -> Conf:
        return read_conf(self.env)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.conf.port}"

    def write_agent(self, name: str, skill: str, **files: str) -> Path:
        """Write the directory of an agent; `files` are named as in config_toml=..."""
        directory = self.project / "agents" / name
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "SKILL.md").write_text(skill)
        for file_name, text in files.items():
            (directory / file_name.replace("_", ".")).write_text(text)
        return directory

    def up(self, seconds: float = 30) -> subprocess.Popen[bytes]:
        """Start `manage.py up` and wait until it is ready."""
        ready = self.log("up").count("Drover is ready")
        process = self.begin_up()
        wait_for(
            lambda: self.log("up").count("Drover is ready") > ready or process.poll() is not None,
            seconds,
            lambda: f"not ready: {self.log('up')}",
        )
        assert process.poll() is None, self.log("up")
        return process

    def begin_up(self) -> subprocess.Popen[bytes]:
        return self._spawn("up", [sys.executable, "manage.py", "up"], self.env)

    def start(self, name: str, seconds: float = 30) -> subprocess.Popen[bytes]:
        """Start one role (redis, worker-1, beat, gateway or flower) and wait until it is ready."""
        role = self._role(name)
        if role.ready_file is not None:
            role.ready_file.unlink(missing_ok=True)
        process = self._spawn(name, role.argv, dict(role.env), role.umask)
        wait_for(
            lambda: _is_ready(role) or process.poll() is not None, seconds, lambda: self.log(name)
        )
        assert process.poll() is None, self.log(name)
        return process

    def begin(self, name: str) -> subprocess.Popen[bytes]:
        """Start one role without waiting for it."""
        role = self._role(name)
        return self._spawn(name, role.argv, dict(role.env), role.umask)

    def stop(self, name: str, seconds: float = 30) -> int:
        return stop_process(self.processes.pop(name), seconds)

    def kill(self, name: str) -> None:
        """Send SIGKILL to the process; its children must end by themselves."""
        process = self.processes.pop(name)
        below = tree_of(process.pid)
        process.kill()
        process.wait()
        wait_for(lambda: all_gone(below), 10, f"{name} left processes: {below}")

    def log(self, name: str) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (self.data.parent / f"{name}.log").read_text(errors="replace")
        return ""

    def manage(self, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        """Execute a command; from the third one on without loading Drover each time."""
        self._commands += 1
        program = [sys.executable, "manage.py"]
        if self._commands > 2:
            program[1:] = ["-IS", command_server.__file__, str(self.command_server())]
        return subprocess.run(
            [*program, *arguments],
            cwd=ROOT,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def command_server(self) -> Path:
        """The socket of a process that executes commands of `manage.py` faster."""
        path = self.data.parent / "commands.sock"
        if "commands" not in self.processes:
            path.unlink(missing_ok=True)
            server = [sys.executable, command_server.__file__, "--serve", str(path)]
            self._spawn("commands", server, self.env)
        wait_for(path.exists, 30, lambda: self.log("commands"))
        return path

    def manage_json(self, *arguments: str) -> Any:
        done = self.manage(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def migrate(self) -> None:
        done = self.manage("migrate", "--verbosity", "0", seconds=300)
        assert done.returncode == 0, done.stderr

    def rows(self, sql: str, *parameters: Any) -> list[Row]:
        """Query the database directly; parameters are written as `?`."""
        if self.database_url.startswith("sqlite"):
            path = self.database_url.removeprefix("sqlite://")
            with contextlib.closing(sqlite3.connect(path, timeout=20)) as lite:
                lite.row_factory = sqlite3.Row
                with lite:
                    return [dict(row) for row in lite.execute(sql, parameters)]
        with psycopg.connect(self.database_url, row_factory=dict_row) as postgres:
            found = postgres.execute(sql.replace("?", "%s").encode(), parameters)
            return list(found) if found.description else []

    def is_writable(self) -> bool:
        """Whether no other connection holds a lock on workers or runs at this moment."""
        if self.database_url.startswith("sqlite"):
            path = self.database_url.removeprefix("sqlite://")
            with contextlib.closing(sqlite3.connect(path, timeout=0)) as lite:
                with contextlib.suppress(sqlite3.OperationalError):
                    lite.execute("BEGIN IMMEDIATE")
                return lite.in_transaction
        lock = "LOCK drover_worker, drover_run IN EXCLUSIVE MODE NOWAIT"
        try:
            with psycopg.connect(self.database_url) as postgres:
                postgres.execute(lock)
        except psycopg.errors.LockNotAvailable:
            return False
        return True

    def wait_for_rows(self, sql: str, *parameters: Any, seconds: float = 20) -> list[Row]:
        return wait_for(lambda: self.rows(sql, *parameters), seconds, f"no rows: {sql}")

    def close(self) -> None:
        # Redis last: without it the other processes take longer to end.
        for name in sorted(self.processes, key=lambda name: name == "redis"):
            below = tree_of(self.processes[name].pid)
            self.stop(name)
            wait_for(lambda pids=below: all_gone(pids), 15, f"{name} left processes")  # type: ignore[misc]

    def __enter__(self) -> "PrivateStack":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _role(self, name: str) -> Role:
        env = {key: value for key, value in self.env.items() if key not in ONLY_FOR_UP}
        # `up` reads from the database which variables are secrets of sources and targets.
        env["DROVER_SECRET_VARIABLES"] = ",".join(env)
        return next(role for role in roles.all_roles(read_conf(env), env) if role.name == name)

    def _spawn(
        self, name: str, argv: Sequence[str], env: dict[str, str], umask: int = -1
    ) -> subprocess.Popen[bytes]:
        with (self.data.parent / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                argv,
                cwd=ROOT,
                env=env,
                stdout=log,
                stderr=log,
                start_new_session=True,
                umask=umask,
            )
        self.processes[name] = process
        return process


def _is_ready(role: Role) -> bool:
    if role.ready_file is not None:
        return role.ready_file.exists()
    assert role.ready is not None

    async def check() -> bool:
        return await role.ready()  # type: ignore[misc]

    time.sleep(0.03)
    return asyncio.run(check())


def copy_of(template: Path, target: Path) -> str:
    """Copy a migrated SQLite file and return its address."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(template, target)
    return f"sqlite:///{target}"
