"""Whatever a run started is dead when the run ends, also what daemonised itself.

This process is a subreaper, so what loses its parent below it becomes its child. Only such
children are ever signalled: nobody else reaps them, so their numbers cannot be anyone else's."""

import contextlib
import os
import signal
import threading
import time
from dataclasses import dataclass

from agents_app.runners import procfs
from agents_app.runners.guard import become_subreaper
from agents_app.runners.procfs import Proc

__all__ = ["FAMILY", "Family", "become_subreaper"]

# The kernel gives orphans to the first living thread of a subreaper: always the main thread.
ORPHANS_FILE = "/proc/self/task/{pid}/children"
KILL_SECONDS = 2.0
EXEC_SECONDS = 0.002
MAX_LOOKS = 1000
_Identity = tuple[int, int]


@dataclass(slots=True)
class _LiveRun:
    began_ticks: int
    leader: int = -1


class Family:
    """The live runs of this process, and the strays: orphans that no runner waits for."""

    def __init__(self, orphans_file: str = ORPHANS_FILE) -> None:
        self._orphans_file = orphans_file
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._adopts = False
        self._sweeps = 0
        self._live: dict[int, _LiveRun] = {}
        self._suspects: dict[_Identity, frozenset[int]] = {}
        self._hopeless: set[_Identity] = set()
        self._orphans_fd = -1

    def adopt(self) -> bool:
        """Makes this process the parent of orphans below it; False where that is not possible."""
        with self._lock:
            if not self._adopts and become_subreaper():
                with contextlib.suppress(OSError):
                    path = self._orphans_file.format(pid=os.getpid())
                    self._orphans_fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                self._adopts = True
            return self._adopts

    def begin(self, run_id: int) -> None:
        """Before the program starts."""
        if not self._adopts:
            self.adopt()
        self._live[run_id] = _LiveRun(_ticks_now())

    def lead(self, run_id: int, pid: int) -> None:
        self._live[run_id].leader = pid

    def end(self, run_id: int) -> None:
        """After the run's leader is dead and its group has been killed."""
        if not self._may_have_strays():
            self._live.pop(run_id, None)
            return
        with self._lock:
            self._sweeps += 1
            self._wait_for_names()
            self._kill_abandoned(run_id)
            self._live.pop(run_id, None)

    def tidy(self) -> None:
        """Now and then during long runs: the dead are reaped, the living remembered early."""
        if self._may_have_strays():
            with self._lock:
                self._sweeps += 1
                self._kill_abandoned()

    def _may_have_strays(self) -> bool:
        """One read in the common case; sound although others sweep at the same time.

        The kernel's list skips entries when an earlier one is reaped during the read. Strays are
        reaped under the lock only, and whoever takes the lock counts first."""
        if self._orphans_fd < 0 or self._lock.locked():
            return self._adopts
        sweeps = self._sweeps
        return bool(os.pread(self._orphans_fd, 64, 0)) or self._sweeps != sweeps

    def _wait_for_names(self) -> None:
        """A new stray that could be anyone's may be in the middle of an exec."""
        known = self._suspects
        new = [stray for stray in self._look() if stray.identity not in known]
        if any(len(self._suspects[stray.identity]) > 1 for stray in new):
            time.sleep(EXEC_SECONDS)

    def _kill_abandoned(self, ending: int | None = None) -> None:
        give_up_at = time.monotonic() + KILL_SECONDS
        marked: set[_Identity] = set()
        while doomed := self._doomed(ending, marked):
            for stray in doomed:
                marked.update(below.identity for below in procfs.descendants(stray.pid))
                _kill(stray.pid)
            self._hopeless.update(stray.identity for stray in _reap(doomed, give_up_at))
            if time.monotonic() >= give_up_at:
                return  # the next sweep goes on

    def _doomed(self, ending: int | None, marked: set[_Identity]) -> list[Proc]:
        """Marked ones were seen below a process that was killed: they share its fate."""
        strays = self._look()
        others = self._live.keys() - {ending}
        return [
            stray
            for stray in strays
            if stray.identity not in self._hopeless
            and (stray.identity in marked or self._suspects[stray.identity].isdisjoint(others))
        ]

    def _look(self) -> list[Proc]:
        """The living strays that runs started; new ones are remembered and dead ones reaped."""
        for _ in range(MAX_LOOKS):
            strays = self._strays()
            self._suspects = {stray.identity: self._owners(stray) for stray in strays}
            self._hopeless &= self._suspects.keys()
            ours = [stray for stray in strays if self._suspects[stray.identity]]
            dead = [stray for stray in ours if stray.dead]
            if not dead:
                return ours
            _reap(dead, until=0)  # and look again: what they left may be ours only now
        return []

    def _strays(self) -> list[Proc]:
        """Without leaders, and without what this process started itself within its session."""
        pid, session = os.getpid(), os.getsid(0)
        leaders = {run.leader for run in list(self._live.values())}
        found = [procfs.look_at(orphan) for orphan in self._orphans() if orphan not in leaders]
        return [proc for proc in found if proc and proc.parent == pid and proc.session != session]

    def _owners(self, stray: Proc) -> frozenset[int]:
        """The runs that may have started it; empty when none can, so it is not ours to kill."""
        known = self._suspects.get(stray.identity)
        if known is not None and len(known) < 2:
            return known
        live = dict(self._live)
        for run_id, run in live.items():
            if run.leader == stray.session:
                return frozenset({run_id})
        # Asked again each time: in the middle of an exec a process has no environment.
        named = procfs.named_run(stray.pid)
        if named is not None and named in (known or live):
            return frozenset({named})
        began = (run_id for run_id, run in live.items() if run.began_ticks <= stray.start_ticks)
        return known or frozenset(began)

    def _orphans(self) -> list[int]:
        if self._orphans_fd < 0:
            return procfs.children_by_psutil(os.getpid())
        text = b""
        while chunk := os.pread(self._orphans_fd, 65536, len(text)):
            text += chunk
        return [int(pid) for pid in text.split()]


def _kill(pid: int) -> None:
    """With its whole group, or a fork bomb outruns us; its session began in the run."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(os.getpgid(pid), signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)


def _reap(strays: list[Proc], until: float) -> list[Proc]:
    """Those still not dead at that time."""
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


FAMILY = Family()
