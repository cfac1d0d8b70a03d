"""Watches the project directory, so that a saved file takes effect without a restart."""

import threading
from collections.abc import Callable
from pathlib import Path

import structlog
from watchfiles import DefaultFilter, watch

log = structlog.get_logger("drover.skills")
SETTLE_MILLISECONDS = 300
# Rescan also without a notification: some file systems send none.
RESCAN_MILLISECONDS = 30_000


def watch_project(project: Path, changed: Callable[[], None], stop: threading.Event) -> None:
    """Call `changed` at the start, after every change, and every 30 seconds; never raises."""
    _call(changed)
    while not stop.is_set():
        try:
            for _ in watch(
                project,
                watch_filter=DefaultFilter(),
                debounce=SETTLE_MILLISECONDS,
                step=100,
                rust_timeout=RESCAN_MILLISECONDS,
                yield_on_timeout=True,
                stop_event=stop,
                raise_interrupt=False,
            ):
                _call(changed)
        except (OSError, RuntimeError) as error:
            log.warning("project.not_watched", project=str(project), error=str(error))
            stop.wait(5)


def _call(changed: Callable[[], None]) -> None:
    try:
        changed()
    except Exception:
        log.exception("project.sync_failed")
