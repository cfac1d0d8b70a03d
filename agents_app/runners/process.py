"""Runs a program as a child process in its own session; one thread supervises one child."""

import contextlib
import math
import os
import select
import signal
import time
from dataclasses import replace
from pathlib import Path

from agents_app.runners.base import (
    EXIT_RERUN,
    CannotSpawn,
    Outcome,
    OutputSink,
    RunControl,
    RunSpec,
    spawn_error,
)
from agents_app.runners.child import ChildProcess, spawn
from agents_app.runners.limits import Confinement, confine
from agents_app.runners.ownership import change_owner
from agents_app.runners.promises import OFF, this_kernel
from agents_app.runners.refusals import REFUSAL, advice_on_refusals
from agents_app.runners.stray_processes import STRAY_PROCESSES, StrayProcesses
from agents_app.runners.supervision import ProgramSupervisor

READ_BYTES = 65536  # a pipe's size; enlarging the pipe was measured to gain nothing
FLUSH_SECONDS = 0.5
SWEEP_SECONDS = 10.0
POLL_SECONDS = 0.02
LINGER_SECONDS = 1.0
LINGER_SILENCE_SECONDS = 0.25
DRAIN_ROUNDS = 16
MAX_REFUSAL_BYTES, RECENT_BYTES = 16_384, 1024


class ProcessRunner:
    """When `run` returns, every process that the program started is dead."""

    def __init__(self, strays: StrayProcesses = STRAY_PROCESSES) -> None:
        self._strays = strays

    def run(self, spec: RunSpec, control: RunControl, sink: OutputSink) -> Outcome:
        if control.request is not None:
            return Outcome("stopped", None, control.request.reason)
        self._strays.begin_run(spec.run_id)
        try:
            outcome, confinement = self._supervise(spec, control, sink)
        finally:
            self._strays.end_run(spec.run_id)
            control.close()
        return _with_limits(outcome, confinement)

    def _supervise(
        self, spec: RunSpec, control: RunControl, sink: OutputSink
    ) -> tuple[Outcome, Confinement | None]:
        try:
            wake = control.open()
            child = self._start(spec)
        except (OSError, ValueError, CannotSpawn) as error:
            return Outcome("spawn_failed", None, spawn_error(spec, error)), None
        confinement: Confinement | None = None
        try:
            self._strays.set_leader(spec.run_id, child.pid, child.sandbox)
            confinement = self._confine(spec, child)
            return self._perform(spec, control, sink, child, wake), confinement
        except BaseException:
            child.kill_and_reap()
            if confinement is not None:
                confinement.remove()
            raise

    def _perform(
        self, spec: RunSpec, control: RunControl, sink: OutputSink, child: ChildProcess, wake: int
    ) -> Outcome:
        """Let the program begin, and return when it is dead."""
        try:
            child.open_gate()
        except (OSError, CannotSpawn) as error:
            child.kill_and_reap()
            return Outcome("spawn_failed", None, spawn_error(spec, error))
        control.sandbox = OFF if spec.sandbox is None else this_kernel().summary
        # The number last: a reader that finds it finds the time as well.
        control.started_at = time.time()
        control.pid = child.pid
        supervisor = _ProcessSupervisor(spec, control, sink, self._strays, child, wake)
        try:
            supervisor.supervise()
        finally:
            control.stdin_messages.end()
            child.kill_and_reap()
        if supervisor.refusals and spec.sandbox is not None:
            control.refusals = advice_on_refusals(supervisor.refusals, spec.sandbox)
        return supervisor.outcome()

    def _start(self, spec: RunSpec) -> ChildProcess:
        if spec.sandbox is not None and os.geteuid() == 0:
            _take_back_state(spec)
        return spawn(spec, gated=spec.runtime.asked_limits is not None)

    def _confine(self, spec: RunSpec, child: ChildProcess) -> Confinement | None:
        """Only agents that ask for limits: setting them costs as much as starting a program."""
        asked = spec.runtime.asked_limits
        return confine(child.pid, spec.run_id, asked) if asked else None


def _take_back_state(spec: RunSpec) -> None:
    """Earlier runs of the agent may have been those of another user, to whom the directory that is
    kept between runs was given. In a sandbox root has no capabilities and could not use it."""
    kept = spec.env.get("DROVER_STATE_DIR")
    if kept and any(mount.writable and str(mount.path) == kept for mount in spec.mounts):
        with contextlib.suppress(FileNotFoundError):
            change_owner(Path(kept), os.geteuid(), os.getegid())


def _with_limits(outcome: Outcome, confinement: Confinement | None) -> Outcome:
    """Name the limit that a failing program reached: most likely it failed because of it."""
    if confinement is None:
        return outcome
    failed = outcome.kind == "exited" and outcome.exit_code not in (0, EXIT_RERUN)
    reached = confinement.reached_limit() if failed else ""
    confinement.remove()
    return replace(outcome, error=reached) if reached else outcome


class _ProcessSupervisor(ProgramSupervisor):
    """Waits for output, exit, stop requests and timers in one poll."""

    give_up_seconds = 5.0

    def __init__(
        self,
        spec: RunSpec,
        control: RunControl,
        sink: OutputSink,
        strays: StrayProcesses,
        child: ChildProcess,
        wake: int,
    ) -> None:
        super().__init__(spec, control)
        self.sink, self.strays = sink, strays
        self.child, self.wake = child, wake
        # Output that reports a refused path, searched only for a program in a sandbox.
        self.refusals = b""
        self.recent: dict[int, bytes] = {}
        self.flush_at = math.inf
        self.sweep_at = time.monotonic() + SWEEP_SECONDS
        self.set_time_limit(spec.timeout_seconds)
        self.poll = select.poll()
        if child.pidfd >= 0:  # first: an exit seen together with a stop request wins
            self.poll.register(child.pidfd, select.POLLIN)
        self.poll.register(wake, select.POLLIN)
        for fd in child.streams:
            self.poll.register(fd, select.POLLIN)
        if child.stdin >= 0:
            control.stdin_messages.begin(child.stdin)

    def supervise(self) -> None:
        """Return when the leader is dead (but not reaped) and its output is read."""
        while not self.over:
            for fd, _ in self.poll.poll(self._wait_ms()):
                self._on_ready(fd)
            if not self.over:
                self._on_clock(time.monotonic())
        if self.child.streams:
            self._read_rest()

    def outcome(self) -> Outcome:
        code = self.child.exit_code
        if code is None:
            return Outcome(self.kind, None, f"{self.error}; it survived SIGKILL", self.child.pid)
        return Outcome(self.kind, code, self.error, self.child.pid)

    def _wait_ms(self) -> int:
        next_at = min(self.act_at, self.flush_at, self.sweep_at)
        wait = max(0.0, next_at - time.monotonic())
        if self.child.pidfd < 0:
            wait = min(wait, POLL_SECONDS)
        return math.ceil(wait * 1000)

    def _on_ready(self, fd: int) -> None:
        if fd in self.child.streams:
            self._read(fd)
        elif fd == self.child.pidfd:
            self.over = True
        elif fd == self.child.stdin:
            self.poll.unregister(fd)
            self._write_messages()
        elif fd == self.wake and not self.over:
            self.on_stop_request()
            self._write_messages()

    def _on_clock(self, now: float) -> None:
        if self.child.pidfd < 0 and self.child.has_exited():
            self.over = True
        elif now >= self.act_at:
            self.act(now)
        if now >= self.flush_at:
            self.flush_at = math.inf
            self.sink.flush()
        if now >= self.sweep_at:
            self.sweep_at = now + SWEEP_SECONDS
            self.strays.sweep()

    def _read(self, fd: int) -> None:
        data = os.read(fd, READ_BYTES)
        if not data:
            self.poll.unregister(fd)
            self.child.close_stream(fd)
            return
        self.sink.feed(self.child.streams[fd], data, time.time())
        if self.spec.sandbox is not None:
            self._search_refusals(self.child.streams[fd], data)
        if self.flush_at == math.inf:
            self.flush_at = time.monotonic() + FLUSH_SECONDS

    def _search_refusals(self, stream: int, data: bytes) -> None:
        """Keep the lines that report a refused path; programs often write them piece by piece."""
        before = self.recent.get(stream, b"")
        if REFUSAL.search(data) or REFUSAL.search(before[-RECENT_BYTES:] + data[:RECENT_BYTES]):
            self.refusals = (self.refusals + before + data)[-MAX_REFUSAL_BYTES:]
            self.recent[stream] = b""
        elif len(data) >= RECENT_BYTES:
            self.recent[stream] = data[-RECENT_BYTES:]
        else:
            self.recent[stream] = (before + data)[-RECENT_BYTES:]

    def terminate(self) -> None:
        self.child.signal_group(signal.SIGTERM)

    def _write_messages(self) -> None:
        """If the pipe is full, the poll reports when it can be written again."""
        if self.child.stdin < 0:
            return
        if self.control.stdin_messages.write(self.child.stdin):
            self.poll.register(self.child.stdin, select.POLLOUT)
        elif not self.control.stdin_messages.is_open:
            self._close_stdin()

    def _close_stdin(self) -> None:
        """Unregister first: the same poll may report that the reader has closed the pipe."""
        if self.child.stdin < 0:
            return
        self.control.stdin_messages.end()
        with contextlib.suppress(KeyError):  # registered only while the pipe is full
            self.poll.unregister(self.child.stdin)
        self.child.close_stdin()

    def kill(self) -> bool:
        self.child.signal_group(signal.SIGKILL)
        return True

    def _read_rest(self) -> None:
        """Read the rest of the output. A process that outlives the leader may hold the pipes open.

        After an exit such a process, for example `tee`, gets a short time to write the last
        lines; then the group is killed."""
        self.poll.unregister(self.wake)
        self._close_stdin()
        if self.child.pidfd >= 0:
            self.poll.unregister(self.child.pidfd)
        if self.kind == "exited":
            until = time.monotonic() + LINGER_SECONDS
            while self._read_ready(LINGER_SILENCE_SECONDS) and time.monotonic() < until:
                pass
        self.child.signal_group(signal.SIGKILL)
        for _ in range(DRAIN_ROUNDS):
            if not self._read_ready(0):
                return

    def _read_ready(self, seconds: float) -> bool:
        if not self.child.streams:
            return False
        ready = self.poll.poll(int(seconds * 1000))
        for fd, _ in ready:
            self._read(fd)
        return bool(ready)
