"""A private Drover whose processes a test starts and kills, observed from outside."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil

from agents_app.conf import ROOT
from agents_app.stack.ready import READY_FILE
from tests.parts.processes import is_gone
from tests.parts.stack_part import PrivateStack, Row
from tests.parts.waiting import wait_for

LEASE_SECONDS = 6.0
RECONCILE_SECONDS = 1.0
QUICK = {
    "DROVER_HEARTBEAT_SECONDS": "1",
    "DROVER_MISSED_HEARTBEATS": f"{LEASE_SECONDS:g}",
    "DROVER_RECONCILE_SECONDS": f"{RECONCILE_SECONDS:g}",
    "DROVER_GRACE_SECONDS": "2",
}
# Added to time limits, because this machine may run other programs.
SLACK_SECONDS = 1.5

# Every run holds this lock until its last process is dead: two live runs are detected.
SCRIPT = """#!/bin/sh
exec 9>>"$NOTES.lock"
flock -n 9 || echo "overlap $DROVER_RUN_ID $$" >>"$NOTES"
echo "start $DROVER_RUN_ID $$" >>"$NOTES"
{body}
echo "end $DROVER_RUN_ID $$" >>"$NOTES"
"""
# Bodies of agents.
NO_WORK = ":"
WHEN_TOLD = 'until [ -e "$NOTES.go" ]; do sleep 0.05; done'
# A child in its own session, a background child, and the shell itself.
WITH_DAEMONS = """
setsid sh -c 'echo "note $DROVER_RUN_ID $$" >>"$NOTES"; sleep 300' </dev/null >/dev/null 2>&1 &
sh -c 'sleep 300 & echo "note $DROVER_RUN_ID $!" >>"$NOTES"'
until [ -e "$NOTES.go" ]; do sleep 0.05; done
"""


@dataclass(frozen=True, slots=True)
class Note:
    """A line that the program of a run wrote."""

    what: str
    run_id: int
    pid: int


class RealFleet:
    """Agents that log their steps, in a stack whose roles are started one by one."""

    def __init__(self, stack: PrivateStack) -> None:
        self.stack = stack
        self._root = stack.data.parent
        self._notes_directory = self._root / "notes"
        self._notes_directory.mkdir(exist_ok=True)
        self._caller: subprocess.Popen[str] | None = None

    # --- agents -----------------------------------------------------------------------------

    def agent(self, name: str, body: str = NO_WORK, **fields: object) -> str:
        """Write the agent to disk; `sync` or a running beat creates its row."""
        notes_allowed = {"write": [str(self._notes_directory)]}
        own = {"description": "a test's", "command": ["./run.sh"], "sandbox": notes_allowed}
        fields = {**own, **fields}
        fields["env"] = {"NOTES": str(self._notes(name))}
        lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in fields.items())
        directory = self.stack.write_agent(name, f"---\n{lines}---\n")
        script = directory / "run.sh"
        script.write_text(SCRIPT.format(body=body))
        script.chmod(0o755)
        return name

    def sync(self) -> None:
        assert self.call("sync") == []

    def let_finish(self, agent: str) -> None:
        Path(f"{self._notes(agent)}.go").touch()

    def notes(self, agent: str, what: str = "") -> list[Note]:
        with suppress(FileNotFoundError):
            words = [line.split() for line in self._notes(agent).read_text().splitlines()]
            found = [Note(kind, int(run_id), int(pid)) for kind, run_id, pid in words]
            return [note for note in found if what in ("", note.what)]
        return []

    def wait_for_notes(self, agent: str, what: str, count: int = 1) -> list[Note]:
        self._until(lambda: len(self.notes(agent, what)) >= count, 20, agent, f"{count} x {what}")
        return self.notes(agent, what)

    def _notes(self, agent: str) -> Path:
        return self._notes_directory / agent

    # --- requests ---------------------------------------------------------------------------

    def call(self, verb: str, *arguments: object) -> Any:
        """Perform a verb of tests/faults/caller.py in a process that is kept for further calls."""
        caller = self._caller = self._caller or self._start_caller()
        assert caller.stdin is not None and caller.stdout is not None
        caller.stdin.write(json.dumps([verb, *arguments]) + "\n")
        caller.stdin.flush()
        answer = caller.stdout.readline()
        assert answer, f"the caller died: {self.stack.log('caller')}"
        return json.loads(answer)

    def call_in_new_process(self, verb: str, *arguments: object) -> Any:
        """`call` in a new process: the old process may have lost its connections."""
        self._end_caller()
        return self.call(verb, *arguments)

    def enqueue(self, agent: str, count: int = 1) -> list[int]:
        """Enqueue work; returns the ids of the work items."""
        items: list[int] = self.call("ask", agent, count)
        return items

    def ask_and_die(self, when: str, agent: str) -> None:
        """Enqueue work in a process that kills itself `before_the_hint` or `after_the_hint`."""
        caller = self._start_caller()
        caller.communicate(json.dumps([f"ask_and_die_{when}", agent]) + "\n", timeout=30)
        assert caller.returncode == -signal.SIGKILL, self.stack.log("caller")

    def _start_caller(self) -> subprocess.Popen[str]:
        with (self._root / "caller.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.faults.caller"],
                cwd=ROOT,
                env=self.stack.env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    # --- rows -------------------------------------------------------------------------------

    def runs(self, agent: str) -> list[Row]:
        sql = (
            "SELECT r.* FROM drover_run r JOIN drover_agent a ON a.id = r.agent_id "
            "WHERE a.name = ? ORDER BY r.id"
        )
        return self.stack.rows(sql, agent)

    def states(self, agent: str) -> list[str]:
        return [run["state"] for run in self.runs(agent)]

    def work(self, agent: str) -> list[str]:
        """The states of the agent's work items, oldest first."""
        sql = (
            "SELECT w.state FROM drover_work_item w JOIN drover_agent a ON a.id = w.agent_id "
            "WHERE a.name = ? ORDER BY w.id"
        )
        return [row["state"] for row in self.stack.rows(sql, agent)]

    def scheduler_state(self) -> str:
        (row,) = self.stack.rows("SELECT state FROM drover_scheduler")
        return str(row["state"])

    def wait_for_states(self, agent: str, *states: str, seconds: float = 20) -> list[Row]:
        """Until the agent's runs, oldest first, are in exactly these states."""
        self._until(lambda: self.states(agent) == list(states), seconds, agent, f"runs {states}")
        return self.runs(agent)

    def wait_until_running(self, agent: str, count: int = 1) -> list[Note]:
        """Wait until the program of each run runs and its process id is stored."""
        found = self.wait_for_notes(agent, "start", count)
        self._until(lambda: all(run["pid"] for run in self.runs(agent)), 10, agent, "pids")
        return found

    def facts(self, agent: str) -> str:
        """For the message of a test that failed."""
        runs = [(r["id"], r["state"], r["error"], str(r["hinted_at"])) for r in self.runs(agent)]
        logs = {name: self.stack.log(name)[-3000:] for name in ("worker-1", "beat", "caller")}
        texts = "".join(f"\n--- {name}\n{text}" for name, text in logs.items())
        return f"runs {runs}, work {self.work(agent)}, notes {self.notes(agent)}{texts}"

    def _until(self, what: Callable[[], bool], seconds: float, agent: str, wanted: str) -> None:
        """Wait; reads the facts only for the message: the database may be unreachable."""
        try:
            wait_for(what, seconds)
        except AssertionError:
            raise AssertionError(f"{agent}: no {wanted}: {self.facts(agent)}") from None

    # --- processes --------------------------------------------------------------------------

    def ensure(self, *roles: str) -> None:
        """Start each role that does not run after the test before."""
        for role in roles:
            process = self.stack.processes.get(role)
            if process is not None and process.poll() is not None:
                del self.stack.processes[role]
            if role not in self.stack.processes:
                self.stack.start(role)

    def start_all(self, role: str, names: list[str]) -> None:
        """Start several processes of one role under these names."""
        one = self.stack._role(role)
        ready = {name: self.stack.data / f"{name}.ready" for name in names}
        for name, path in ready.items():
            self.stack._spawn(name, one.argv, {**one.env, READY_FILE: str(path)})
        wait_for(lambda: all(path.exists() for path in ready.values()), 30, f"{names} not ready")

    def latest_worker(self) -> Row:
        """The row of the worker that was started last."""
        sql = "SELECT * FROM drover_worker WHERE ended_at IS NULL ORDER BY id DESC LIMIT 1"
        (worker,) = self.stack.rows(sql)
        return worker

    def kill_worker(self) -> float:
        """Send SIGKILL to the worker, not to its guard; returns the time of the signal."""
        os.kill(self.latest_worker()["pid"], signal.SIGKILL)
        return time.monotonic()

    def freeze(self, pid: int) -> None:
        """Stop the process with SIGSTOP at a moment when it holds no lock of the database.

        A frozen process keeps its locks. In SQLite every other writer would wait for them."""

        def frozen_without_lock() -> bool:
            os.kill(pid, signal.SIGSTOP)
            if self.stack.is_writable():
                return True
            os.kill(pid, signal.SIGCONT)
            return False

        wait_for(frozen_without_lock, 10, f"process {pid} always holds a lock of the database")

    def wait_for_exit(self, role: str, seconds: float = 20) -> int:
        """Wait for a role to exit; returns its exit status."""
        status = self.stack.processes[role].wait(seconds)
        del self.stack.processes[role]
        return status

    def close(self) -> None:
        """End all processes, also processes that a failed test has left."""
        roles = [process.pid for process in self.stack.processes.values()]
        try:
            self._end_caller()
            self.stack.close()
        finally:
            for process in self._left(roles):
                with suppress(psutil.NoSuchProcess):
                    process.kill()

    def _left(self, roles: list[int]) -> list[psutil.Process]:
        """The roles and orphans, which are found by their open files: Celery overwrites
        environments."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                ours = any(file.path.startswith(f"{self._root}/") for file in process.open_files())
                if process.pid in roles or (ours and process.pid != os.getpid()):
                    found += [process, *process.children(recursive=True)]
        return found

    def _end_caller(self) -> None:
        if self._caller is not None:
            self._caller.communicate(timeout=20)
            self._caller = None


def stamp(moment: datetime) -> str:
    """A time for both databases, in exactly the form that Django writes into SQLite."""
    return str(moment.astimezone(UTC).replace(tzinfo=None))


def seconds_ago(seconds: float) -> str:
    return stamp(datetime.now(UTC) - timedelta(seconds=seconds))


def moment(value: object) -> datetime:
    """A time of a row: PostgreSQL gives a datetime, SQLite a text."""
    if isinstance(value, datetime):
        return value
    return datetime.fromisoformat(str(value)).replace(tzinfo=UTC)


def gone_within(pids: list[int], seconds: float, since: float) -> None:
    """Assert that all processes are dead so many seconds after the moment."""
    left = since + seconds - time.monotonic()
    wait_for(lambda: all(map(is_gone, pids)), max(0.0, left), f"still alive: {pids}")
