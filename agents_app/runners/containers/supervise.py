"""Supervises one container: prompt, output, time limit and end. It starts no container."""

import contextlib
import math
import os
import select
import socket
import time
from pathlib import Path

from agents_app.runners.base import Outcome, OutputSink, RunControl, RunSpec
from agents_app.runners.containers.engine import (
    ContainerState,
    DockerClient,
    EngineRefused,
    EngineUnavailable,
)
from agents_app.runners.containers.frames import Frames
from agents_app.runners.supervision import ProgramSupervisor

PIECE_BYTES = 65536
FLUSH_SECONDS = 0.5
# The output ends shortly before the engine reports the end of the container.
FIRST_CHECK_SECONDS, MAX_CHECK_SECONDS = 0.005, 0.5
UNAVAILABLE_SECONDS = 0.5
# Exit codes of containers that ended because the engine was stopped.
KILLED_WITH_THE_ENGINE = frozenset({137, 143, 255})


class ContainerSupervisor(ProgramSupervisor):
    """Waits for output, stop requests and timers in one poll."""

    give_up_seconds = 10.0

    def __init__(
        self,
        engine: DockerClient,
        container: str,
        spec: RunSpec,
        control: RunControl,
        sink: OutputSink,
    ) -> None:
        super().__init__(spec, control)
        self.engine, self.container, self.sink = engine, container, sink
        self.state: ContainerState | None = None
        self.read_bytes = {1: 0, 2: 0}
        self.frames = Frames()
        self.stream = -1
        self.prompt: _Prompt | None = None
        # False: output may be missing, and the engine's log must be read.
        self.complete = False
        self.engine_was_unavailable = False
        self.flush_at = math.inf
        self.check_at, self.check_seconds = 0.0, FIRST_CHECK_SECONDS
        self.poll = select.poll()
        control.created_container = container
        self.wake = control.open()
        self.poll.register(self.wake, select.POLLIN)

    def attach(self) -> None:
        attached = self.engine.attach(self.container)
        self.prompt = _Prompt(attached, self.spec.prompt_file)
        events = select.POLLIN if self.spec.messages_on_stdin else select.POLLIN | select.POLLOUT
        self._read_from(attached.fileno(), events)
        if self.spec.messages_on_stdin:
            self.control.stdin_messages.begin()

    def supervise(self, seconds: float) -> None:
        """Return when the container has ended, is gone, or survived SIGKILL."""
        if self.prompt is None or self.spec.messages_on_stdin:
            self._allow_adoption()
        self.control.started_at = time.time()
        self.set_time_limit(seconds)
        while not self.over:
            for fd, events in self.poll.poll(self._wait_ms()):
                self._on_ready(fd, events)
            if not self.over:
                self._on_clock(time.monotonic())

    def outcome(self) -> Outcome:
        state = self.state
        if self.kind == "lost":
            return Outcome("lost", None, self.error)
        if state is None:
            return Outcome(self.kind, None, f"{self.error}; it survived SIGKILL")
        if self.kind != "exited":
            return Outcome(self.kind, state.exit_code, self.error)
        if self.engine_was_unavailable and state.exit_code in KILLED_WITH_THE_ENGINE:
            return Outcome(
                "lost", None, "lost: the Docker daemon stopped, and the container with it"
            )
        return Outcome("exited", state.exit_code, self._oom_error(state))

    @property
    def result_is_known(self) -> bool:
        """Whether the container has ended and its exit code is that of the program."""
        return self.state is not None and self.outcome().kind != "lost"

    def close(self) -> None:
        self._close_stream()
        self.control.close()

    def _oom_error(self, state: ContainerState) -> str:
        if not (state.oom_killed and state.exit_code):
            return ""
        return (
            f"oom_killed: the run needed more than its {self.spec.runtime.memory} of memory; "
            "raise the agent's `runtime.memory`, or use less memory"
        )

    # --- waiting ----------------------------------------------------------------------------

    def _allow_adoption(self) -> None:
        if self.spec.adoptable:
            self.control.container = self.container

    def _wait_ms(self) -> int:
        check_at = self.check_at if self.stream < 0 else math.inf
        wait = min(self.act_at, self.flush_at, check_at) - time.monotonic()
        return math.ceil(max(0.0, wait) * 1000)

    def _on_ready(self, fd: int, events: int) -> None:
        if fd == self.wake:
            self.on_stop_request()
            self._write_messages()
            return
        if events & select.POLLOUT and self.spec.messages_on_stdin:
            self._write_messages()
        elif events & select.POLLOUT and self.prompt is not None and self.prompt.write():
            # The container has its prompt, so another worker could adopt it.
            self._allow_adoption()
            self.poll.modify(fd, select.POLLIN)
        if events & ~select.POLLOUT:
            self._read(fd)

    def _on_clock(self, now: float) -> None:
        if now >= self.act_at:
            self.act(now)
        if now >= self.flush_at:
            self.flush_at = math.inf
            self.sink.flush()
        if self.stream < 0 and now >= self.check_at:
            self._check_state(now)

    def _write_messages(self) -> None:
        if self.control.stdin_messages.is_open and self.stream >= 0:
            waits = self.control.stdin_messages.write(self.stream)
            self.poll.modify(self.stream, select.POLLIN | (select.POLLOUT if waits else 0))

    # --- output -----------------------------------------------------------------------------

    def _read_from(self, fd: int, events: int) -> None:
        self.stream = fd
        self.complete = True
        self.frames = Frames(self.read_bytes)
        self.poll.register(fd, events)

    def _read(self, fd: int) -> None:
        data = b""
        with contextlib.suppress(ConnectionError):
            data = os.read(fd, PIECE_BYTES)
        if not data:
            self._close_stream()
            self.check_at, self.check_seconds = 0.0, FIRST_CHECK_SECONDS
            return
        at = time.time()
        for stream, piece in self.frames.feed(data):
            if stream in self.read_bytes:  # the engine may use a third stream
                self.read_bytes[stream] += len(piece)
                self.sink.feed(stream, piece, at)
        if self.flush_at == math.inf:
            self.flush_at = time.monotonic() + FLUSH_SECONDS

    def _close_stream(self) -> None:
        if self.stream < 0:
            return
        self.poll.unregister(self.stream)
        self.control.stdin_messages.end()
        if self.prompt is not None:
            self.prompt.close()
            self.prompt = None
        else:
            os.close(self.stream)
        self.stream = -1

    # --- the end ----------------------------------------------------------------------------

    def _check_state(self, now: float) -> None:
        """The output has ended: the container ended, closed its output, or the engine stopped."""
        recent = self.check_seconds < MAX_CHECK_SECONDS
        self.check_seconds = min(2 * self.check_seconds, MAX_CHECK_SECONDS)
        self.check_at = now + self.check_seconds
        try:
            state = self.engine.state(self.container)
            if state is None:
                self._lose("lost: the container was removed, but not by Drover")
            elif self.complete and not state.running:
                self.state, self.over = state, True
            elif not (self.complete and recent):
                self._read_from(self.engine.follow(self.container), select.POLLIN)
        except EngineUnavailable:
            self.engine_was_unavailable, self.complete = True, False
            self.check_at = now + UNAVAILABLE_SECONDS
        except EngineRefused as error:
            self._lose(f"lost: the output of the container cannot be read: {error}")

    def _lose(self, error: str) -> None:
        if self.kind == "exited":
            self.kind, self.error = "lost", error
        self.over = True

    def terminate(self) -> None:
        self._signal("SIGTERM")

    def kill(self) -> bool:
        return self._signal("SIGKILL")

    def hint(self) -> str:
        with contextlib.suppress(EngineUnavailable):
            if self.engine.refused_processes(self.container):
                return f"; it reached its limit of {self.spec.runtime.pids_limit} processes"
        return ""

    def _signal(self, name: str) -> bool:
        try:
            self.engine.signal(self.container, name)
        except EngineUnavailable:
            return False
        return True


class _Prompt:
    """Writes the prompt to the container as fast as it is read, then closes its stdin."""

    def __init__(self, attached: socket.socket, file: Path) -> None:
        self._attached = attached
        # A hook may have replaced the file by a link or a pipe: neither follow nor wait.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        self._file = os.open(file, flags)
        self._written = 0

    def write(self) -> bool:
        """True when the whole prompt is written."""
        try:
            piece = os.pread(self._file, PIECE_BYTES, self._written)
            if piece:
                self._written += self._attached.send(piece)
                return False
            self._attached.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            return False
        except OSError:
            pass  # the program has ended or closed its stdin
        return True

    def close(self) -> None:
        os.close(self._file)
        self._attached.close()
