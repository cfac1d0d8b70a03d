"""Identifies the process that performs a rule's action, and tells whether it is gone."""

import os
from datetime import datetime
from functools import lru_cache

from agents_app.models import Worker
from agents_app.worker import boot_id, is_alive, process_started, this_host

_SEPARATOR = "|"


def this_process() -> str:
    return _process_identity(os.getpid())


@lru_cache(maxsize=2)
def _process_identity(pid: int) -> str:
    started = process_started(pid) or 0.0
    return _SEPARATOR.join((this_host(), boot_id(), str(pid), f"{started:.2f}"))


def is_gone(holder: str, held_until: datetime | None, now: datetime) -> bool:
    """Checked directly for a process of this host; on another host, by the time limit."""
    host, *process = holder.split(_SEPARATOR)
    if host != this_host() or len(process) != 3:
        return held_until is None or held_until < now
    boot, pid, started = process
    return not is_alive(Worker(boot_id=boot, pid=int(pid), pid_started=float(started)))
