"""Checks and ends processes that a test has started."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

import psutil

from tests.parts.waiting import wait_for


def is_gone(pid: int) -> bool:
    """Whether a process is gone; zombies count as gone, because process 1 may reap them late."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def all_gone(pids: Iterable[int]) -> bool:
    return all(map(is_gone, pids))


def tree_of(pid: int) -> list[int]:
    """The process and all its descendants."""
    try:
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.NoSuchProcess:
        return []


def stop_by_pid(pid: int, seconds: float = 10.0) -> None:
    """Send TERM, then KILL; only for processes that the test started."""
    for signum in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)
        with contextlib.suppress(AssertionError):
            wait_for(lambda: is_gone(pid), seconds)
            return


def stop_process(process: subprocess.Popen[bytes], seconds: float = 10.0) -> int:
    """Send TERM, then KILL; returns the exit status."""
    process.terminate()
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def environment_of(pid: int) -> dict[str, str]:
    raw = Path(f"/proc/{pid}/environ").read_bytes()
    pairs = (entry.partition(b"=") for entry in raw.split(b"\0") if entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


class ProcessorShare:
    """How much of the processor time that the main thread of a process wanted it has got."""

    def __init__(self, pid: int) -> None:
        self._path = Path(f"/proc/{pid}/task/{pid}/schedstat")
        self._ran, self._waited = self._read()

    def share(self) -> float:
        """1 if the thread never waited for a processor since this object was made."""
        ran, waited = self._read()
        ran, waited = ran - self._ran, waited - self._waited
        return ran / (ran + waited) if ran else 1.0

    def _read(self) -> tuple[int, int]:
        ran, waited, _ = self._path.read_text().split()
        return int(ran), int(waited)
