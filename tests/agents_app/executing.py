"""Runs that are really executed: at once, or on a thread as a worker does it."""

import threading
import time
from datetime import datetime
from typing import Any

from django.db import connection

from agents_app.models import Agent, Run, RunOutput
from agents_app.runners.base import RunControl
from agents_app.worker import execute
from agents_app.worker.execute import Host
from tests.agents_app.fleet import Fleet, at, live_run
from tests.parts.waiting import wait_for


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def printed(run_id: int, stream: int = 1) -> str:
    pieces = RunOutput.objects.filter(run=run_id, stream=stream).order_by("seq")
    return b"".join(bytes(piece.data) for piece in pieces).decode()


def do(fleet: Fleet, host: Host, agent: Agent, **request: Any) -> Run:
    """Ask for a run, execute it, and see what became of it."""
    run = live_run(fleet.enqueue(agent, **request))
    assert execute.execute(run.pk, host) == 1
    run.refresh_from_db()
    return run


class Executing:
    """A run that is executed on a thread, as a worker does, with commits that all can see."""

    def __init__(self, fleet: Fleet, agent: Agent, **request: Any) -> None:
        self.over = False
        self.error: Exception | None = None
        self.host = Host(fleet.worker().pk, self._clock)
        self.item = fleet.enqueue(agent, **request)
        self.run = live_run(self.item)
        self._thread = threading.Thread(target=self._execute, daemon=True)
        self._thread.start()
        wait_for(lambda: self.run.pk in self.host.live and self.control.pid)

    def _clock(self) -> datetime:
        if self.over:
            raise RuntimeError("the test is over")
        return at(time.monotonic() % 1000)

    def _execute(self) -> None:
        try:
            execute.execute(self.run.pk, self.host)
        except Exception as error:
            if not self.over:
                self.error = error
        finally:
            connection.close()

    @property
    def control(self) -> RunControl:
        return self.host.live[self.run.pk]

    def ended(self, seconds: float = 10) -> bool:
        self._thread.join(seconds)
        assert self.error is None, self.error
        return not self._thread.is_alive()

    def close(self) -> None:
        self.over = True
        if self.run.pk in self.host.live:
            self.control.stop("the test is over", grace_seconds=0)
        assert self.ended()
