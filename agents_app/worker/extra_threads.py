"""Threads in addition to the worker's pool, for runs that were called by waiting runs.

A run that waits for a call keeps its thread. If all threads waited, no called run could start, so
there may be one extra thread for each waiting run.
"""

import threading
from datetime import datetime

import structlog
from django.db import connections
from django.db.models import Case, IntegerField, Value, When

from agents_app.models import Run, Trigger
from agents_app.runs import LONGEST_WAIT
from agents_app.worker.execute import Host, execute_called

log = structlog.get_logger("drover.extra_threads")


class ExtraThreads:
    def __init__(self, host: Host, concurrency: int) -> None:
        self.host = host
        self.concurrency = concurrency
        self._threads: dict[int, threading.Thread] = {}

    def serve(self, now: datetime) -> int:
        """Start threads for pending runs; returns how many. Called by the lease thread."""
        self._threads = {key: one for key, one in self._threads.items() if one.is_alive()}
        live = list(self.host.live)
        if len(live) < self.concurrency:
            return 0  # the pool has a free thread
        waiting = Run.objects.filter(pk__in=live, waiting_since__gt=now - LONGEST_WAIT).count()
        free = waiting - len(self._threads)
        if free <= 0:
            return 0
        pending = self._pending(free)
        for run_id in pending:
            self._start(run_id)
        return len(pending)

    def join(self) -> None:
        for thread in list(self._threads.values()):
            thread.join()

    def _pending(self, limit: int) -> list[int]:
        """Pending runs: called ones first, then the oldest."""
        pending = Run.objects.filter(state=Run.State.PENDING).exclude(pk__in=list(self._threads))
        if self.host.draining.is_set():
            pending = pending.filter(trigger=Trigger.CALL)
        called = Case(
            When(trigger=Trigger.CALL, then=Value(0)), default=Value(1), output_field=IntegerField()
        )
        return list(pending.order_by(called, "pk").values_list("pk", flat=True)[:limit])

    def _start(self, run_id: int) -> None:
        thread = threading.Thread(
            target=self._execute, args=[run_id], name=f"extra-{run_id}", daemon=True
        )
        self._threads[run_id] = thread
        thread.start()

    def _execute(self, run_id: int) -> None:
        try:
            execute_called(run_id, self.host)
        except Exception:
            # As in the pool: the sweep finds a run whose start failed.
            log.exception("extra_thread.failed", run_id=run_id)
        finally:
            connections.close_all()
