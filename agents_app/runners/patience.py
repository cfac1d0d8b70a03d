"""How long a run may take, and what follows: it is asked to end, made to, and at last given up."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from agents_app.runners.base import Kind, RunControl, RunSpec

AGAIN_SECONDS = 0.5


class Patience(ABC):
    """For whoever watches over something that runs; `over` says that it is waited for no more."""

    # How long after a KILL it may still be there.
    unkillable_seconds: float

    def __init__(self, spec: RunSpec, control: RunControl) -> None:
        self.spec, self.control = spec, control
        self.kind: Kind = "exited"
        self.error = ""
        self.over = False
        self.act: Callable[[float], None] = self._time_out
        self.act_at = math.inf

    @abstractmethod
    def ask_to_end(self) -> None:
        """TERM, to all of it."""

    @abstractmethod
    def make_it_end(self) -> bool:
        """KILL; False if nobody could be told, and it must be tried again."""

    def excuse(self) -> str:
        """What may have kept it from ending by itself, after the reason."""
        return ""

    def allow(self, seconds: float) -> None:
        """From now on."""
        self.act_at = time.monotonic() + seconds

    def heed_request(self) -> None:
        """Somebody wants it to end, or to end sooner than the one before."""
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
        self.kind, self.error = kind, error + self.excuse()
        grace = self.spec.grace_seconds if grace is None else grace
        if grace > 0:
            self.ask_to_end()
        self.act, self.act_at = self._kill, now + max(0.0, grace)

    def _kill(self, now: float) -> None:
        """Nobody else can: as long as that fails, the run is not over."""
        if self.make_it_end():
            self.act, self.act_at = self._give_up, now + self.unkillable_seconds
        else:
            self.act_at = now + AGAIN_SECONDS

    def _give_up(self, _now: float) -> None:
        self.over = True
