"""Ends a worker that no longer receives hints although hints for it are in Redis.

Celery's consumer may stay connected without receiving messages after Redis was restarted. The
supervisor starts the worker again.
"""

import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import structlog
from django.db import DatabaseError, close_old_connections

from agents_app.events import relay
from agents_app.models import Run
from agents_app.worker.execute import Host

log = structlog.get_logger("drover.consumer")
CHECK_EVERY_SECONDS = 10.0
STUCK_SECONDS = 90.0
# Hints of this age are no longer on their way.
WAITING = timedelta(seconds=30)
EXIT_STUCK = 70


class ConsumerWatch:
    """Compares the hints in Redis with the hints that this worker receives, on its own thread."""

    def __init__(
        self,
        host: Host,
        concurrency: int,
        monotonic: Callable[[], float] = time.monotonic,
        end_process: Callable[[int], None] = os._exit,
    ) -> None:
        self._host = host
        self._concurrency = concurrency
        self._monotonic = monotonic
        self._end_process = end_process
        self._last_ok_at = monotonic()
        self._received = 0
        self._stuck = False

    def start(self) -> None:
        threading.Thread(target=self._loop, name="consumer-watch", daemon=True).start()

    def check(self) -> None:
        """End the process after `STUCK_SECONDS` without a hint; first let its runs finish."""
        if not self._stuck and self._receives_hints():
            self._last_ok_at = self._monotonic()
        elif not self._stuck and self._monotonic() - self._last_ok_at >= STUCK_SECONDS:
            self._stuck = True
            log.error("worker.stuck", worker_id=self._host.worker_id)
            self._host.draining.set()
        if self._stuck and not self._host.live:
            self._end_process(EXIT_STUCK)

    def _receives_hints(self) -> bool:
        """Whether a hint was received since the last check.

        True also if no hint waits in Redis, or if this worker cannot take another run."""
        received = self._host.hints.received
        received_more, self._received = received > self._received, received
        busy = len(self._host.live) >= self._concurrency or self._host.draining.is_set()
        return received_more or busy or not self._hints_are_waiting()

    def _hints_are_waiting(self) -> bool:
        """False also if Redis does not answer: a new process would not receive hints either."""
        stale = self._host.clock() - WAITING
        pending = Run.objects.filter(state=Run.State.PENDING, hinted_at__lt=stale)
        agents = set(pending.values_list("agent_id", flat=True))
        counts = relay.waiting_hints(agents) if agents else None
        return any(counts.values()) if counts else False

    def _loop(self) -> None:
        while True:
            time.sleep(CHECK_EVERY_SECONDS)
            try:
                self.check()
            except DatabaseError as error:
                log.debug("consumer.not_checked", error=str(error))
            close_old_connections()
