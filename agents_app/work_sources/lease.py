"""The lease on a work source: one process at a time serves it, and a dead one is replaced."""

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from uuid import uuid4

from django.db.models import QuerySet

from agents_app.database import in_transaction
from agents_app.models import Worker, WorkSource
from agents_app.work_sources.kinds import WorkSourceError
from agents_app.worker import boot_id, is_alive, process_started, this_host

# Longer than the longest time between two requests to a source.
LEASE = timedelta(seconds=120)
RENEW_AFTER = timedelta(seconds=20)


class SourceLease:
    """Held from `take` to `give_back`; `renew` before each request keeps it."""

    def __init__(self, source_id: int, clock: Callable[[], datetime]) -> None:
        self.rows = WorkSource.objects.filter(pk=source_id)
        self.clock = clock
        self.holder = _this_process()
        self.renewed_at = clock()

    def take(self) -> bool:
        """False: another process serves the source, or it was deleted."""
        now = self.clock()
        row = self.rows.values_list("busy_by", "busy_until").first()
        if row is None:
            return False
        by, until = row
        if by and until is not None and until > now and not _is_dead(by):
            return False
        same = self.rows.filter(busy_by=by, busy_until=until)
        self.renewed_at = now
        return self._write(same, self.holder, now + LEASE)

    def renew(self) -> None:
        now = self.clock()
        if now - self.renewed_at < RENEW_AFTER:
            return
        if not self._write(self.rows.filter(busy_by=self.holder), self.holder, now + LEASE):
            raise WorkSourceError("another process has taken over the work source")
        self.renewed_at = now

    def give_back(self) -> None:
        self._write(self.rows.filter(busy_by=self.holder), "", None)

    def _write(self, rows: QuerySet[WorkSource], by: str, until: datetime | None) -> bool:
        return bool(in_transaction(lambda: rows.update(busy_by=by, busy_until=until)))


def _this_process() -> str:
    """Host, boot, pid, start of the process, and a part of its own for each thread."""
    started = process_started(os.getpid()) or 0.0
    return f"{this_host()}|{boot_id()}|{os.getpid()}|{started}|{uuid4().hex}"


def _is_dead(holder: str) -> bool:
    """Whether the process is known to have ended; of another host it is not known."""
    with suppress(ValueError):
        host, boot, pid, started, _ = holder.rsplit("|", 4)
        worker = Worker(boot_id=boot, pid=int(pid), pid_started=float(started))
        return host == this_host() and not is_alive(worker)
    return True
