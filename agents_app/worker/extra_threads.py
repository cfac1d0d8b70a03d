"""Threads beside a worker's pool, for runs that its waiting runs have called.

A run that waits for another one keeps its thread and does nothing with it. If all of them did, the
called one would never start: so there may be one more thread for each that waits.
"""

import threading
from datetime import datetime

import structlog
from django.db import connections
from django.db.models import Case, IntegerField, Value, When

from agents_app.models import Run, Trigger
from agents_app.runs import LONGEST_WAIT
from agents_app.worker.execute import Host, execute_called

log = structlog.get_logger("drover.spares")


class ExtraThreads:
    def __init__(self, host: Host, concurrency: int) -> None:
        self.host = host
        self.concurrency = concurrency
        self._threads: dict[int, threading.Thread] = {}

    def serve(self, now: datetime) -> int:
        """Called on the lease's thread, twice a second; how many threads were started."""
        self._threads = {key: one for key, one in self._threads.items() if one.is_alive()}
        live = list(self.host.live)
        if len(live) < self.concurrency:
            return 0  # the pool itself has a thread to spare
        waiting = Run.objects.filter(pk__in=live, waiting_since__gt=now - LONGEST_WAIT).count()
        room = waiting - len(self._threads)
        if room <= 0:
            return 0
        pending = self._pending(room)
        for run_id in pending:
            self._start(run_id)
        return len(pending)

    def join(self) -> None:
        for thread in list(self._threads.values()):
            thread.join()

    def _pending(self, room: int) -> list[int]:
        """What was called first, then what waits longest."""
        pending = Run.objects.filter(state=Run.State.PENDING).exclude(pk__in=list(self._threads))
        if self.host.draining.is_set():
            pending = pending.filter(trigger=Trigger.CALL)
        called = Case(
            When(trigger=Trigger.CALL, then=Value(0)), default=Value(1), output_field=IntegerField()
        )
        return list(pending.order_by(called, "pk").values_list("pk", flat=True)[:room])

    def _start(self, run_id: int) -> None:
        thread = threading.Thread(
            target=self._execute, args=[run_id], name=f"spare-{run_id}", daemon=True
        )
        self._threads[run_id] = thread
        thread.start()

    def _execute(self, run_id: int) -> None:
        try:
            execute_called(run_id, self.host)
        except Exception:
            # As in the pool: a start that failed is found again by the sweep.
            log.exception("spares.failed", run_id=run_id)
        finally:
            connections.close_all()
