"""Waits until runs have ended: within a request, or on a thread that then stops Drover."""

import threading
import time

import structlog
from django.db import close_old_connections
from django.db.models import QuerySet

from agents_app.conf import CONF
from agents_app.errors import DroverError
from agents_app.models import Run
from agents_app.runs import shutdown

log = structlog.get_logger("drover.api")
CHECK_EVERY_SECONDS = 0.1
# The grace period of a program that does not stop, and two seconds until its worker has noticed.
LONGEST_SECONDS = CONF.grace_seconds + 2
_shutdown_lock = threading.Lock()


def wait_until_ended(runs: "QuerySet[Run]") -> None:
    """Returns when none of the runs is left, or after LONGEST_SECONDS: the caller checks again."""
    give_up_at = time.monotonic() + LONGEST_SECONDS
    while runs.exists() and time.monotonic() < give_up_at:
        time.sleep(CHECK_EVERY_SECONDS)


def stop_when_idle() -> None:
    """Starts at most one thread; if this process ends first, the request must be repeated."""
    if _shutdown_lock.acquire(blocking=False):
        threading.Thread(target=_stop_when_idle, name="shutdown", daemon=True).start()


def _stop_when_idle() -> None:
    try:
        shutdown.wait_until_idle(None, lambda text: log.info("shutdown.waiting", detail=text))
        shutdown.stop_processes()
    except DroverError as error:
        log.warning("shutdown.unfinished", error=str(error))
    finally:
        _shutdown_lock.release()
        close_old_connections()
