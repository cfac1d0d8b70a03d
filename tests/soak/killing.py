"""Finds the processes of a running stack by role, and sends SIGKILL to random ones."""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress

import psutil

from tests.parts.processes import all_gone, is_gone, tree_of
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

# How often a role is chosen. `up` resets the growing delay before `up` restarts a process.
WEIGHTS = {"worker": 4, "run": 4, "gateway": 3, "beat": 3, "redis": 2, "guard": 2, "up": 2}
PAUSE_SECONDS = (0.3, 2.5)
START_SECONDS = 60.0
# A run that was killed with its worker and its guard is ended by the next sweep.
ORPHAN_SECONDS = 30.0
_PARTS_OF_COMMANDS = {
    "guard.py": "guard",
    "gateway_app.serve": "gateway",
    "valkey-server": "redis",
    "redis-server": "redis",
    "beat": "beat",
}


def role_of_command(command: str) -> str:
    """The role of a child process of `up`; empty if unknown or not started completely."""
    # Celery changes the command line of a beat.
    found = (role for part, role in _PARTS_OF_COMMANDS.items() if part in command)
    return next(found, "")


def processes_by_role(up: psutil.Process) -> dict[str, list[psutil.Process]]:
    """`up` and its descendants; a process that ends meanwhile is left out."""
    found: dict[str, list[psutil.Process]] = {"up": [up]}
    for child in _children(up):
        with suppress(psutil.Error):
            role = role_of_command(" ".join(child.cmdline()))
            if role:
                found.setdefault(role, []).append(child)
            if role == "guard":
                workers = _children(child)
                found.setdefault("worker", []).extend(workers)
                found.setdefault("run", []).extend(
                    below for worker in workers for below in _children(worker)
                )
    return {role: processes for role, processes in found.items() if processes}


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children())
    except psutil.Error:
        return []


def choose(
    present: Mapping[str, list[psutil.Process]], chance: random.Random
) -> tuple[str, psutil.Process]:
    roles = sorted(present)
    (role,) = chance.choices(roles, [WEIGHTS[role] for role in roles])
    return role, chance.choice(present[role])


class Killer:
    """Kills processes of the stack for some seconds, and starts `up` again when it was killed."""

    def __init__(
        self, stack: PrivateStack, seed: int, report: Callable[[str], None] = lambda _: None
    ) -> None:
        self._stack = stack
        self._chance = random.Random(seed)
        self._report = report
        self.kills: Counter[str] = Counter()

    def run(self, seconds: float) -> None:
        end_at = time.monotonic() + seconds
        while time.monotonic() < end_at:
            time.sleep(self._chance.uniform(*PAUSE_SECONDS))
            self._kill_one()
        self.ensure_running()

    def ensure_running(self) -> None:
        """Start the stack if it does not run, and fail if an old process is still there."""
        up = self._stack.processes.get("up")
        if up is None or up.poll() is not None:
            self._stack.processes.pop("up", None)
            self._stack.up(START_SECONDS)

    def _kill_one(self) -> None:
        self.ensure_running()
        up = psutil.Process(self._stack.processes["up"].pid)
        role, process = choose(processes_by_role(up), self._chance)
        below = tree_of(up.pid) if role == "up" else []
        try:
            process.kill()
        except psutil.NoSuchProcess:
            return
        self.kills[role] += 1
        self._report(f"killed {role}")
        if role == "up":
            self._stack.processes["up"].wait()
            wait_for(lambda: all_gone(below), ORPHAN_SECONDS, lambda: f"left over: {_left(below)}")


def _left(pids: list[int]) -> list[str]:
    texts = []
    for pid in pids:
        with suppress(psutil.Error):
            if not is_gone(pid):
                texts.append(f"{pid} {' '.join(psutil.Process(pid).cmdline())[:100]}")
    return texts
