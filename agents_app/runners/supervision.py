"""How a running program is ended: time limit or stop request, SIGTERM, SIGKILL, giving up."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from agents_app.runners.base import Kind, RunControl, RunSpec

KILL_AGAIN_SECONDS = 0.5


class ProgramSupervisor(ABC):
    """The base of supervisors. `act` is the next step, due at `act_at`: time out, kill, give up.

    `over` is set when the program has ended or is given up."""

    # How long after SIGKILL the program is waited for.
    give_up_seconds: float

    def __init__(self, spec: RunSpec, control: RunControl) -> None:
        self.spec, self.control = spec, control
        self.kind: Kind = "exited"
        self.error = ""
        self.over = False
        self.act: Callable[[float], None] = self._time_out
        self.act_at = math.inf

    @abstractmethod
    def terminate(self) -> None:
        """Send SIGTERM to all processes of the program."""

    @abstractmethod
    def kill(self) -> bool:
        """Send SIGKILL; False if it could not be sent and must be sent again."""

    def hint(self) -> str:
        """What may have kept the program from ending by itself; appended to the error."""
        return ""

    def set_time_limit(self, seconds: float) -> None:
        self.act_at = time.monotonic() + seconds

    def on_stop_request(self) -> None:
        """End the program, or shorten the grace period of an earlier request."""
        request = self.control.take()
        if request is None:
            return
        now = time.monotonic()
        if self.kind == "exited":
            self._end("stopped", request.reason, now, request.grace_seconds)
        elif self.act == self._kill and request.grace_seconds is not None:
            self.act_at = min(self.act_at, now + request.grace_seconds)

    def _time_out(self, now: float) -> None:
        self._end("timed_out", f"timed out after {self.spec.timeout_seconds:g} s", now)

    def _end(self, kind: Kind, error: str, now: float, grace: float | None = None) -> None:
        self.kind, self.error = kind, error + self.hint()
        grace = self.spec.grace_seconds if grace is None else grace
        if grace > 0:
            self.terminate()
        self.act, self.act_at = self._kill, now + max(0.0, grace)

    def _kill(self, now: float) -> None:
        """Until SIGKILL could be sent, the run is not over."""
        if self.kill():
            self.act, self.act_at = self._give_up, now + self.give_up_seconds
        else:
            self.act_at = now + KILL_AGAIN_SECONDS

    def _give_up(self, _now: float) -> None:
        self.over = True
