"""Ends this Drover once nothing runs any more, on a thread: whoever asked has their answer."""

import threading

import structlog
from django.db import close_old_connections

from agents_app.errors import DroverError
from agents_app.runs import shutdown

log = structlog.get_logger("drover.api")
_one = threading.Lock()


def finish_when_idle() -> None:
    """Once at a time; if this process ends meanwhile, asking again goes on with it."""
    if _one.acquire(blocking=False):
        threading.Thread(target=_finish, name="shutdown", daemon=True).start()


def _finish() -> None:
    try:
        shutdown.wait_until_idle(None, lambda text: log.info("shutdown.waiting", detail=text))
        shutdown.finish()
    except DroverError as error:
        log.warning("shutdown.unfinished", error=str(error))
    finally:
        _one.release()
        close_old_connections()
