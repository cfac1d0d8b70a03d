"""Starts racing processes on a database of their own, and ends them, politely or not."""

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
    """One process that does one act."""

    def __init__(self, pid: int, answer: Path) -> None:
        self.pid = pid
        self.answer = answer

    def join(self, seconds: float = 30) -> Any:
        """What the act returned; its exception is the test's."""
        wait_for(lambda: self.answer.exists() or is_gone(self.pid), seconds, "still racing")
        assert self.answer.exists(), "the racer died"
        result = json.loads(self.answer.read_text())
        assert "error" not in result, result["error"]
        return result["result"]

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def died_of_sigkill(self, seconds: float = 10) -> bool:
        """It ended without an answer, as one that was killed does."""
        wait_for(lambda: is_gone(self.pid), seconds, "it was not killed")
        return not self.answer.exists()


class Arena:
    def __init__(self, stack: PrivateStack) -> None:
        self.directory = stack.data.parent
        self.log = self.directory / "racers.log"
        self.racers: list[Racer] = []
        with self.log.open("ab") as log:
            self.starter = subprocess.Popen(
                [sys.executable, "-m", "tests.races.racers"],
                cwd=ROOT,
                env=stack.env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def begin(self, act: str, **arguments: Any) -> Racer:
        answer = self.directory / f"answer-{len(self.racers)}.json"
        order = {"act": act, "arguments": arguments, "answer": str(answer)}
        assert self.starter.stdin and self.starter.stdout
        self.starter.stdin.write(json.dumps(order).encode() + b"\n")
        self.starter.stdin.flush()
        line = self.starter.stdout.readline()
        assert line, self.log.read_text()[-4000:]
        self.racers.append(Racer(int(line), answer))
        return self.racers[-1]

    def do(self, act: str, **arguments: Any) -> Any:
        return self.begin(act, **arguments).join()

    def race(self, *acts: tuple[str, dict[str, Any]], seconds: float = 30) -> list[Any]:
        """All at the same moment; what each returned."""
        start_at = time.time() + 0.05 + 0.01 * len(acts)
        racers = [self.begin(act, start_at=start_at, **arguments) for act, arguments in acts]
        return [racer.join(seconds) for racer in racers]

    def close(self) -> None:
        for racer in self.racers:
            if not racer.answer.exists() and not is_gone(racer.pid):
                racer.kill()
        assert self.starter.stdin and self.starter.stdout
        self.starter.stdin.close()
        self.starter.wait(10)
        self.starter.stdout.close()
