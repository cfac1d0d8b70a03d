"""Which process does what a rule says, and whether it still can."""

import os
from datetime import datetime
from functools import lru_cache

from agents_app.models import Worker
from agents_app.worker import boot_id, is_alive, process_started, this_host

_APART = "|"


def this_process() -> str:
    return _named(os.getpid())


@lru_cache(maxsize=2)
def _named(pid: int) -> str:
    started = process_started(pid) or 0.0
    return _APART.join((this_host(), boot_id(), str(pid), f"{started:.2f}"))


def is_gone(holder: str, held_until: datetime | None, now: datetime) -> bool:
    """Of this host we know; of another one, only when its time is up."""
    host, *process = holder.split(_APART)
    if host != this_host() or len(process) != 3:
        return held_until is None or held_until < now
    boot, pid, started = process
    return not is_alive(Worker(boot_id=boot, pid=int(pid), pid_started=float(started)))
