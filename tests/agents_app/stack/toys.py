"""Small child programs for the supervisor, and a handle on a supervising process."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.parts.processes import stop_process, tree_of
from tests.parts.waiting import wait_for

ROOT = Path(__file__).resolve().parents[3]

# Each prints its name and process id first, so that a test can find it.
_START = "import os, signal, sys, time; print('pid', os.getpid(), flush=True)\n"
SLEEPS = "time.sleep(600)"
IGNORES_TERM = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\n" + SLEEPS


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-ISc", _START + code)


def ends_slowly(seconds: float, log: Path | None = None) -> str:
    """A program that ends so many seconds after TERM, and logs both times."""
    return f"""
def note(word):
    if {str(log) if log else ""!r}:
        with open({str(log) if log else ""!r}, "a") as file:
            file.write(word + " " + sys.argv[-1] + "\\n")
def term(*_):
    note("asked")
    time.sleep({seconds})
    note("ended")
    sys.exit(0)
signal.signal(signal.SIGTERM, term)
print('listening', flush=True)
time.sleep(600)
"""


class ToyStack:
    """The toy supervisor as a process of its own, its output in a file."""

    def __init__(self, directory: Path, *roles: dict[str, Any], stdout: int | None = None) -> None:
        self.directory = directory
        self.log = directory / "output.log"
        spec = directory / "roles.json"
        spec.write_text(json.dumps(roles))
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.agents_app.stack.toy_stack", str(spec)],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=log if stdout is None else stdout,
                stderr=subprocess.STDOUT,
            )

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_for_text(self, text: str, seconds: float = 10) -> None:
        wait_for(
            lambda: text in self.output() or self.process.poll() is not None,
            seconds,
            f"{text!r} is not in:\n{self.output()}",
        )
        assert text in self.output(), self.output()

    def children(self) -> list[int]:
        return tree_of(self.process.pid)[1:]

    def signal(self, signum: signal.Signals) -> None:
        self.process.send_signal(signum)

    def exit_code(self, seconds: float = 10) -> int:
        return self.process.wait(seconds)

    def __enter__(self) -> "ToyStack":
        return self

    def __exit__(self, *_: object) -> None:
        stop_process(self.process, 5)
