"""Runs a program as a child process in a session of its own; one thread supervises one child."""

import contextlib
import math
import os
import select
import signal
import time
from dataclasses import replace

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
from agents_app.runners.family import FAMILY, Family
from agents_app.runners.limits import Confinement, confine
from agents_app.runners.patience import Patience

READ_BYTES = 65536  # a pipe's size; enlarging the pipe was measured to gain nothing
FLUSH_SECONDS = 0.5
TIDY_SECONDS = 10.0
POLL_SECONDS = 0.02
LINGER_SECONDS = 1.0
LINGER_SILENCE_SECONDS = 0.25
DRAIN_ROUNDS = 16


class ProcessRunner:
    """The family sees to it that nothing the program started outlives the run."""

    def __init__(self, family: Family = FAMILY) -> None:
        self._family = family

    def run(self, spec: RunSpec, control: RunControl, sink: OutputSink) -> Outcome:
        if control.request is not None:
            return Outcome("stopped", None, control.request.reason)
        self._family.begin(spec.run_id)
        try:
            outcome, confinement = self._supervise(spec, control, sink)
        finally:
            self._family.end(spec.run_id)
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
        self._family.lead(spec.run_id, child.pid)
        confinement = self._confine(spec, child)
        control.pid, control.started_at = child.pid, time.time()
        supervision = _Supervision(spec, control, sink, self._family, child, wake)
        try:
            supervision.watch()
        finally:
            control.telling.end()
            child.bury()
        return supervision.outcome(), confinement

    def _start(self, spec: RunSpec) -> ChildProcess:
        return spawn(spec)

    def _confine(self, spec: RunSpec, child: ChildProcess) -> Confinement | None:
        """Only an agent that asks for limits has any: they cost as much as starting a program."""
        asked = spec.runtime.asked_limits
        return confine(child.pid, spec.run_id, asked) if asked else None


def _with_limits(outcome: Outcome, confinement: Confinement | None) -> Outcome:
    """A program that met a limit most likely failed because of it."""
    if confinement is None:
        return outcome
    met = confinement.end()
    if not met or outcome.kind != "exited" or outcome.exit_code in (0, EXIT_RERUN):
        return outcome
    return replace(outcome, error=met)


class _Supervision(Patience):
    """Waits on output, exit, stop requests and the clock, all in one poll."""

    unkillable_seconds = 5.0

    def __init__(
        self,
        spec: RunSpec,
        control: RunControl,
        sink: OutputSink,
        family: Family,
        child: ChildProcess,
        wake: int,
    ) -> None:
        super().__init__(spec, control)
        self.sink, self.family = sink, family
        self.child, self.wake = child, wake
        self.flush_at = math.inf
        self.tidy_at = time.monotonic() + TIDY_SECONDS
        self.allow(spec.timeout_seconds)
        self.poll = select.poll()
        if child.pidfd >= 0:  # first: an exit seen in the same moment as a stop request wins
            self.poll.register(child.pidfd, select.POLLIN)
        self.poll.register(wake, select.POLLIN)
        for fd in child.streams:
            self.poll.register(fd, select.POLLIN)
        if child.stdin >= 0:
            control.telling.begin(child.stdin)

    def watch(self) -> None:
        """Returns when the leader is dead (but not reaped) and its output is read."""
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
        next_at = min(self.act_at, self.flush_at, self.tidy_at)
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
            self._tell()
        elif fd == self.wake and not self.over:
            self.heed_request()
            self._tell()

    def _on_clock(self, now: float) -> None:
        if self.child.pidfd < 0 and self.child.has_exited():
            self.over = True
        elif now >= self.act_at:
            self.act(now)
        if now >= self.flush_at:
            self.flush_at = math.inf
            self.sink.flush()
        if now >= self.tidy_at:
            self.tidy_at = now + TIDY_SECONDS
            self.family.tidy()

    def _read(self, fd: int) -> None:
        data = os.read(fd, READ_BYTES)
        if not data:
            self.poll.unregister(fd)
            self.child.close_stream(fd)
            return
        self.sink.feed(self.child.streams[fd], data, time.time())
        if self.flush_at == math.inf:
            self.flush_at = time.monotonic() + FLUSH_SECONDS

    def ask_to_end(self) -> None:
        self.child.signal_group(signal.SIGTERM)

    def _tell(self) -> None:
        """What waits for room in the pipe is tried again when there is some."""
        if self.child.stdin < 0:
            return
        if self.control.telling.say(self.child.stdin):
            self.poll.register(self.child.stdin, select.POLLOUT)
        elif not self.control.telling.heard:
            self._close_stdin()

    def _close_stdin(self) -> None:
        """The poll forgets it first: it may say in the same breath that the reader is gone."""
        if self.child.stdin < 0:
            return
        self.control.telling.end()
        with contextlib.suppress(KeyError):  # it is polled only while something waits for room
            self.poll.unregister(self.child.stdin)
        self.child.close_stdin()

    def make_it_end(self) -> bool:
        self.child.signal_group(signal.SIGKILL)
        return True

    def _read_rest(self) -> None:
        """What is still in the pipes, which someone left behind may hold open for ever.

        A program that ended by itself may have left a `tee` that is about to write the last
        lines; after that nobody is waited for."""
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
