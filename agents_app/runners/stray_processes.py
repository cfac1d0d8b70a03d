"""Kills every process of a run when the run ends, also daemonised ones.

This process is a subreaper: a descendant that loses its parent becomes its child. Only such
children are signalled: no other code reaps them, so their pids cannot have been reused."""

import contextlib
import os
import signal
import threading
import time
from dataclasses import dataclass

from agents_app.runners import procfs
from agents_app.runners.guard import become_subreaper
from agents_app.runners.procfs import ProcessInfo
from agents_app.runners.sandbox_threads import IDLE, SandboxThread

__all__ = ["STRAY_PROCESSES", "StrayProcesses", "become_subreaper"]

# The kernel gives orphans to the first living thread of a subreaper, which is the main thread.
ORPHANS_FILE = "/proc/self/task/{pid}/children"
KILL_SECONDS = 2.0
EXEC_SECONDS = 0.002
MAX_READS = 1000
_Identity = tuple[int, int]


@dataclass(slots=True)
class _LiveRun:
    began_ticks: int
    leader: int = -1
    sandbox: SandboxThread | None = None


class StrayProcesses:
    """The live runs of this process and the strays: orphans that are not the leader of a run."""

    def __init__(self, orphans_file: str = ORPHANS_FILE) -> None:
        self._orphans_file = orphans_file
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._is_subreaper = False
        self._sweeps = 0
        self._live: dict[int, _LiveRun] = {}
        self._owners: dict[_Identity, frozenset[int]] = {}
        self._unkillable: set[_Identity] = set()
        self._orphans_fd = -1

    def become_subreaper(self) -> bool:
        """Make this process the parent of orphaned descendants; False if that is not supported."""
        with self._lock:
            if not self._is_subreaper and become_subreaper():
                with contextlib.suppress(OSError):
                    path = self._orphans_file.format(pid=os.getpid())
                    self._orphans_fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                self._is_subreaper = True
            return self._is_subreaper

    def begin_run(self, run_id: int) -> None:
        """Call before the program starts."""
        if not self._is_subreaper:
            self.become_subreaper()
        self._live[run_id] = _LiveRun(_ticks_now())

    def set_leader(self, run_id: int, pid: int, sandbox: SandboxThread | None = None) -> None:
        """The thread of the sandbox waits for another run of the agent when the run has ended."""
        run = self._live[run_id]
        run.leader, run.sandbox = pid, sandbox

    def end_run(self, run_id: int) -> None:
        """Kill the strays of the run. Call when its leader is dead and its group was killed."""
        if self._may_have_strays():
            with self._lock:
                self._sweeps += 1
                self._wait_for_exec()
                self._kill_abandoned(run_id)
                run = self._live.pop(run_id, None)
        else:
            run = self._live.pop(run_id, None)
        if run is not None and run.sandbox is not None:
            # A process that cannot be killed may be inside.
            if self._unkillable:
                run.sandbox.close()
            else:
                IDLE.give(run.sandbox)

    def sweep(self) -> None:
        """During long runs: reap dead strays and record the owners of living ones early."""
        if self._may_have_strays():
            with self._lock:
                self._sweeps += 1
                self._kill_abandoned()

    def _may_have_strays(self) -> bool:
        """One read in the usual case; correct although other threads sweep at the same time.

        The kernel's list skips entries if an earlier one is reaped during the read. Strays are
        reaped under the lock only, and a thread that takes the lock counts its sweep first."""
        if self._orphans_fd < 0 or self._lock.locked():
            return self._is_subreaper
        sweeps = self._sweeps
        return bool(os.pread(self._orphans_fd, 64, 0)) or self._sweeps != sweeps

    def _wait_for_exec(self) -> None:
        """A new stray of unknown owner may be inside exec, when its environment is empty."""
        known = self._owners
        new = [stray for stray in self._living_strays() if stray.identity not in known]
        if any(len(self._owners[stray.identity]) > 1 for stray in new):
            time.sleep(EXEC_SECONDS)

    def _kill_abandoned(self, ending: int | None = None) -> None:
        give_up_at = time.monotonic() + KILL_SECONDS
        marked: set[_Identity] = set()
        while to_kill := self._strays_to_kill(ending, marked):
            for stray in to_kill:
                marked.update(below.identity for below in procfs.descendants(stray.pid))
                _kill(stray.pid)
            self._unkillable.update(stray.identity for stray in _reap(to_kill, give_up_at))
            if time.monotonic() >= give_up_at:
                return  # the next sweep continues

    def _strays_to_kill(self, ending: int | None, marked: set[_Identity]) -> list[ProcessInfo]:
        """Strays without another live owner, and `marked` ones: descendants of a killed stray."""
        strays = self._living_strays()
        others = self._live.keys() - {ending}
        return [
            stray
            for stray in strays
            if stray.identity not in self._unkillable
            and (stray.identity in marked or self._owners[stray.identity].isdisjoint(others))
        ]

    def _living_strays(self) -> list[ProcessInfo]:
        """The living strays of runs; records owners of new ones and reaps dead ones."""
        for _ in range(MAX_READS):
            strays = self._strays()
            self._owners = {stray.identity: self._find_owners(stray) for stray in strays}
            self._unkillable &= self._owners.keys()
            owned = [stray for stray in strays if self._owners[stray.identity]]
            dead = [stray for stray in owned if stray.dead]
            if not dead:
                return owned
            _reap(dead, until=0)  # then read again: their children became children of this process
        return []

    def _strays(self) -> list[ProcessInfo]:
        """Children that are neither leaders of runs nor in the session of this process."""
        pid, session = os.getpid(), os.getsid(0)
        leaders = {run.leader for run in list(self._live.values())}
        found = [
            procfs.read_process(orphan) for orphan in self._read_orphans() if orphan not in leaders
        ]
        return [proc for proc in found if proc and proc.parent == pid and proc.session != session]

    def _find_owners(self, stray: ProcessInfo) -> frozenset[int]:
        """The runs that may have started the stray. One without owners must not be killed."""
        known = self._owners.get(stray.identity)
        if known is not None and len(known) < 2:
            return known
        live = dict(self._live)
        for run_id, run in live.items():
            if run.leader == stray.session:
                return frozenset({run_id})
        # Before the environment, which a program can choose: the kernel knows the sandbox.
        for run_id, run in live.items():
            if run.sandbox is not None and run.sandbox.contains(stray.pid):
                return frozenset({run_id})
        # Read every time: during exec a process has no environment.
        named = procfs.run_id_in_environment(stray.pid)
        if named is not None and named in (known or live):
            return frozenset({named})
        began = (run_id for run_id, run in live.items() if run.began_ticks <= stray.start_ticks)
        return known or frozenset(began)

    def _read_orphans(self) -> list[int]:
        if self._orphans_fd < 0:
            return procfs.children_by_psutil(os.getpid())
        text = b""
        while chunk := os.pread(self._orphans_fd, 65536, len(text)):
            text += chunk
        return [int(pid) for pid in text.split()]


def _kill(pid: int) -> None:
    """Kill the whole group, whose session began in the run: a fork bomb would outpace one kill."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(os.getpgid(pid), signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)


def _reap(strays: list[ProcessInfo], until: float) -> list[ProcessInfo]:
    """Reap until the time given; returns the strays that are still alive."""
    pause = 0.0005
    while alive := [stray for stray in strays if not _reaped(stray.pid)]:
        if time.monotonic() >= until:
            return alive
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
        strays = alive
    return []


def _reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _ticks_now() -> int:
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return int(time.clock_gettime(clock) * procfs.TICKS_PER_SECOND)


STRAY_PROCESSES = StrayProcesses()
