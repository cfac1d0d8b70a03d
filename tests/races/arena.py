"""Starts concurrent processes on a private database, and ends or kills them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from agents_app.conf import ROOT
from tests.parts.processes import is_gone
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for


class Racer:
    """A process that performs one act."""

    def __init__(self, pid: int, answer: Path) -> None:
        self.pid = pid
        self.answer = answer

    def join(self, seconds: float = 30) -> Any:
        """The result of the act; fails with its exception if it raised one."""
        wait_for(
            lambda: self.answer.exists() or is_gone(self.pid), seconds, "the racer is still running"
        )
        assert self.answer.exists(), "the racer died"
        result = json.loads(self.answer.read_text())
        assert "error" not in result, result["error"]
        return result["result"]

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def died_of_sigkill(self, seconds: float = 10) -> bool:
        """Whether the process ended without an answer, as a killed process does."""
        wait_for(lambda: is_gone(self.pid), seconds, "the racer was not killed")
        return not self.answer.exists()


class Starter:
    """The process that all racers are forked from, because Django takes a second to set up."""

    def __init__(self, stack: PrivateStack) -> None:
        self.log = stack.data.parent / "racers.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.races.racers"],
                cwd=ROOT,
                env=stack.env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def fork(self, **order: Any) -> int:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.log.read_text()[-4000:]
        return int(line)

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


class Arena:
    """A private database and the processes that use it concurrently."""

    def __init__(self, starter: Starter, database: str, directory: Path) -> None:
        self.starter = starter
        self.database = database
        self.directory = directory
        self.racers: list[Racer] = []

    def start(self, act: str, **arguments: Any) -> Racer:
        answer = self.directory / f"answer-{len(self.racers)}.json"
        pid = self.starter.fork(
            act=act, arguments=arguments, answer=str(answer), database=self.database
        )
        self.racers.append(Racer(pid, answer))
        return self.racers[-1]

    def do(self, act: str, **arguments: Any) -> Any:
        return self.start(act, **arguments).join()

    def race(self, *acts: tuple[str, dict[str, Any]], seconds: float = 30) -> list[Any]:
        """Perform all acts at the same moment; returns their results."""
        # Each process connects to the database before: two of them at a time, in 0.1 s.
        start_at = time.time() + 0.1 + 0.05 * len(acts)
        racers = [self.start(act, start_at=start_at, **arguments) for act, arguments in acts]
        return [racer.join(seconds) for racer in racers]

    def close(self) -> None:
        for racer in self.racers:
            if not racer.answer.exists() and not is_gone(racer.pid):
                racer.kill()
