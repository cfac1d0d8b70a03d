"""Programs for the runner tests, run to their end or in a thread."""

import itertools
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from agents_app.output.buffer import OutputBuffer, Segment
from agents_app.runners.base import (
    Mount,
    Outcome,
    RunControl,
    Runner,
    RunSpec,
    Runtime,
    Sandbox,
)
from agents_app.runners.process import ProcessRunner
from tests.parts.waiting import wait_for

RUN_IDS = itertools.count(1000)
# The programs of the system, and nothing of this user.
SYSTEM_ONLY = Sandbox(
    read=("/usr", "/bin", "/lib", "/lib64", "/etc", "/proc", "/sys"),
    write=("/dev/null", "/dev/zero", "/dev/shm"),
)


class Sink:
    """Keeps what it is fed in a real buffer, and when it was flushed."""

    def __init__(self) -> None:
        self.buffer = OutputBuffer()
        self.segments: list[Segment] = []
        self.flushed_at: list[float] = []

    def feed(self, stream: int, data: bytes, at: float) -> None:
        self.buffer.feed(stream, data, at)

    def flush(self) -> None:
        self.flushed_at.append(time.monotonic())
        self.segments += self.buffer.take()

    def text(self, *streams: int) -> bytes:
        self.segments += self.buffer.finish()
        return b"".join(s.data for s in self.segments if s.stream in (streams or (1, 2)))


class Program:
    """One run of a shell script, with everything that can be asked about it afterwards."""

    def __init__(
        self,
        where: Path,
        *argv: str,
        runner: Runner | None = None,
        timeout: float = 30.0,
        grace: float = 10.0,
        runtime: Runtime | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        self.run_id = next(RUN_IDS)
        self.runner = runner or ProcessRunner()
        self.control = RunControl()
        self.sink = Sink()
        self.ended = False
        self.thread: threading.Thread | None = None
        self.took_seconds = 0.0
        self.cwd = where / str(self.run_id)
        self.cwd.mkdir()
        prompt = self.cwd / "prompt"
        prompt.write_text("hello")
        self.env = {"PATH": os.environ["PATH"], "DROVER_RUN_ID": str(self.run_id)}
        self.spec = RunSpec(self.run_id, argv, self.env, self.cwd, prompt, timeout, grace)
        if runtime is not None:
            self.spec = replace(
                self.spec,
                runtime=runtime,
                trace_id="7" * 32,
                mounts=(Mount(self.cwd, writable=True),),
                env={**self.env, "PATH": "/usr/bin:/bin", "DROVER_TRACE_ID": "7" * 32},
            )
        if sandbox is not None:
            own = (*sandbox.own_write, str(self.cwd))
            self.spec = replace(self.spec, sandbox=replace(sandbox, own_write=own))

    def run(self) -> "Program":
        began = time.monotonic()
        self.outcome: Outcome = self.runner.run(self.spec, self.control, self.sink)
        self.ended = True
        self.took_seconds = time.monotonic() - began
        return self

    def start(self) -> "Program":
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def join(self, seconds: float = 20.0) -> "Program":
        if self.thread is not None:
            self.thread.join(seconds)
            assert not self.thread.is_alive(), "the run did not end"
        return self

    def note(self, name: str) -> str:
        """What the program wrote to a file of that name, once it has."""
        path = self.cwd / name
        return wait_for(lambda: path.read_text().strip() if path.exists() else "", message=name)

    def pid(self) -> int:
        """Of the leader, once it has started."""
        return wait_for(lambda: self.control.pid or 0)

    def noted_pid(self, name: str = "pid") -> int:
        return int(self.note(name))


Shell = Callable[..., Program]
