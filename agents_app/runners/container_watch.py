"""Watches over one container: its prompt, its output, its time, its end; begins no container."""

import contextlib
import math
import os
import select
import socket
import time
from pathlib import Path

from agents_app.runners.base import Outcome, OutputSink, RunControl, RunSpec
from agents_app.runners.docker_engine import (
    ContainerState,
    Engine,
    EngineAway,
    EngineRefused,
)
from agents_app.runners.frames import Frames
from agents_app.runners.patience import Patience

PIECE_BYTES = 65536
FLUSH_SECONDS = 0.5
# An end of the output is seen a little before the engine knows of the end of the container.
FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 0.005, 0.5
AWAY_SECONDS = 0.5
# What an engine that comes back makes of containers that it has not kept alive.
KILLED_WITH_THE_ENGINE = frozenset({137, 143, 255})


class Watch(Patience):
    """Waits on output, stop requests and the clock, all in one poll."""

    unkillable_seconds = 10.0

    def __init__(
        self, engine: Engine, container: str, spec: RunSpec, control: RunControl, sink: OutputSink
    ) -> None:
        super().__init__(spec, control)
        self.engine, self.container, self.sink = engine, container, sink
        self.state: ContainerState | None = None
        self.read_bytes = {1: 0, 2: 0}
        self.frames = Frames()
        self.stream = -1
        self.prompt: _Prompt | None = None
        # False: the output so far may not be all, and the engine's log must be read.
        self.complete = False
        self.engine_was_away = False
        self.flush_at = math.inf
        self.look_at, self.look_seconds = 0.0, FIRST_LOOK_SECONDS
        self.poll = select.poll()
        control.made = container
        self.wake = control.open()
        self.poll.register(self.wake, select.POLLIN)

    def attach(self) -> None:
        attached = self.engine.attach(self.container)
        self.prompt = _Prompt(attached, self.spec.prompt_file)
        events = select.POLLIN if self.spec.hears else select.POLLIN | select.POLLOUT
        self._read_from(attached.fileno(), events)
        if self.spec.hears:
            self.control.telling.begin()

    def until_it_ends(self, seconds: float) -> None:
        """Returns when the container is dead or gone, or would not die."""
        if self.prompt is None or self.spec.hears:
            self._can_go_on()
        self.control.started_at = time.time()
        self.allow(seconds)
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
        if self.engine_was_away and state.exit_code in KILLED_WITH_THE_ENGINE:
            return Outcome("lost", None, "lost: the Docker daemon stopped, and its container too")
        return Outcome("exited", state.exit_code, self._hint(state))

    def close(self) -> None:
        self._close_stream()
        self.control.close()

    def _hint(self, state: ContainerState) -> str:
        if not (state.oom_killed and state.exit_code):
            return ""
        return (
            f"oom_killed: it needed more than its {self.spec.runtime.memory} of memory; "
            "raise the agent's `runtime.memory`, or make it need less"
        )

    # --- waiting ----------------------------------------------------------------------------

    def _can_go_on(self) -> None:
        if self.spec.adoptable:
            self.control.container = self.container

    def _wait_ms(self) -> int:
        look_at = self.look_at if self.stream < 0 else math.inf
        wait = min(self.act_at, self.flush_at, look_at) - time.monotonic()
        return math.ceil(max(0.0, wait) * 1000)

    def _on_ready(self, fd: int, events: int) -> None:
        if fd == self.wake:
            self.heed_request()
            self._tell()
            return
        if events & select.POLLOUT and self.spec.hears:
            self._tell()
        elif events & select.POLLOUT and self.prompt is not None and self.prompt.write():
            # From here on it could go on without this worker.
            self._can_go_on()
            self.poll.modify(fd, select.POLLIN)
        if events & ~select.POLLOUT:
            self._read(fd)

    def _on_clock(self, now: float) -> None:
        if now >= self.act_at:
            self.act(now)
        if now >= self.flush_at:
            self.flush_at = math.inf
            self.sink.flush()
        if self.stream < 0 and now >= self.look_at:
            self._look(now)

    def _tell(self) -> None:
        if self.control.telling.heard and self.stream >= 0:
            waits = self.control.telling.say(self.stream)
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
            self.look_at, self.look_seconds = 0.0, FIRST_LOOK_SECONDS
            return
        at = time.time()
        for stream, piece in self.frames.feed(data):
            if stream in self.read_bytes:  # the engine may say something itself, on a third one
                self.read_bytes[stream] += len(piece)
                self.sink.feed(stream, piece, at)
        if self.flush_at == math.inf:
            self.flush_at = time.monotonic() + FLUSH_SECONDS

    def _close_stream(self) -> None:
        if self.stream < 0:
            return
        self.poll.unregister(self.stream)
        self.control.telling.end()
        if self.prompt is not None:
            self.prompt.close()
            self.prompt = None
        else:
            os.close(self.stream)
        self.stream = -1

    # --- its end ----------------------------------------------------------------------------

    def _look(self, now: float) -> None:
        """The output has ended. So has the container, or the engine, or it closed its output."""
        patience = self.look_seconds < LONGEST_LOOK_SECONDS
        self.look_seconds = min(2 * self.look_seconds, LONGEST_LOOK_SECONDS)
        self.look_at = now + self.look_seconds
        try:
            state = self.engine.state(self.container)
            if state is None:
                self._lose("lost: its container was removed by somebody else")
            elif self.complete and not state.running:
                self.state, self.over = state, True
            elif not (self.complete and patience):
                self._read_from(self.engine.follow(self.container), select.POLLIN)
        except EngineAway:
            self.engine_was_away, self.complete = True, False
            self.look_at = now + AWAY_SECONDS
        except EngineRefused as error:
            self._lose(f"lost: its output cannot be read: {error}")

    def _lose(self, error: str) -> None:
        if self.kind == "exited":
            self.kind, self.error = "lost", error
        self.over = True

    def ask_to_end(self) -> None:
        self._signal("SIGTERM")

    def make_it_end(self) -> bool:
        return self._signal("SIGKILL")

    def excuse(self) -> str:
        with contextlib.suppress(EngineAway):
            if self.engine.refused_processes(self.container):
                return f"; it reached its limit of {self.spec.runtime.pids_limit} processes"
        return ""

    def _signal(self, name: str) -> bool:
        try:
            self.engine.signal(self.container, name)
        except EngineAway:
            return False
        return True


class _Prompt:
    """Goes into the container as fast as the program reads it, then its stdin is closed."""

    def __init__(self, attached: socket.socket, file: Path) -> None:
        self._attached = attached
        # Not through a link, nor waiting for a pipe: a hook may have put one there.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        self._file = os.open(file, flags)
        self._written = 0

    def write(self) -> bool:
        """True when nothing more is to be written."""
        try:
            piece = os.pread(self._file, PIECE_BYTES, self._written)
            if piece:
                self._written += self._attached.send(piece)
                return False
            self._attached.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            return False
        except OSError:
            pass  # it has ended, or closed its stdin: not everybody wants a prompt
        return True

    def close(self) -> None:
        os.close(self._file)
        self._attached.close()
