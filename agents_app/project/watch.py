"""Watches the files of a project, so that a saved file takes effect without a restart."""

import os
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

import structlog
from watchfiles import Change, DefaultFilter, watch

log = structlog.get_logger("drover.skills")
SETTLE_MILLISECONDS = 300
# Rescan also without a notification: some file systems send none.
RESCAN_MILLISECONDS = 30_000
# A watch returns this soon after it has begun, also without a change.
TICK_MILLISECONDS = 100
RETRY_SECONDS = 5.0

# Reads the project, and returns files of it that a watch of the directory alone may miss.
Changed = Callable[[], Collection[Path] | None]


def watch_project(
    project: Path, changed: Changed, stop: threading.Event, most_directories: int | None = None
) -> None:
    """Call `changed` at the start, after every change, and every 30 seconds; never raises.

    The watch begins before `changed` is called: a file that is saved meanwhile is seen.

    A project with more directories is read every 30 seconds only: to begin a watch of a large
    tree stops the other threads of the process, and uses up watches of the whole host."""
    files = _ReadFiles(project)
    while not stop.is_set():
        if most_directories is not None and has_more_directories(project, most_directories):
            files.note(_call(changed))
            stop.wait(RESCAN_MILLISECONDS / 1000)
            continue
        try:
            _read_while_watching(files, changed, stop)
        except (OSError, RuntimeError) as error:
            log.warning("project.not_watched", project=str(project), error=str(error))
            files.note(_call(changed))
            stop.wait(RETRY_SECONDS)


def _read_while_watching(files: "_ReadFiles", changed: Changed, stop: threading.Event) -> None:
    """Returns when other directories must be watched, too, or after `stop`."""
    directories = files.directories
    read_again_at = time.monotonic()
    for changes in watch(
        *directories,
        watch_filter=files,
        debounce=SETTLE_MILLISECONDS,
        step=100,
        rust_timeout=TICK_MILLISECONDS,
        yield_on_timeout=True,
        stop_event=stop,
        raise_interrupt=False,
    ):
        if not changes and time.monotonic() < read_again_at:
            continue
        files.note(_call(changed))
        read_again_at = time.monotonic() + RESCAN_MILLISECONDS / 1000
        if files.directories != directories:
            return


def has_more_directories(project: Path, most: int) -> bool:
    """Whether there are more than so many directories below the project; links not followed."""
    below = iter(os.walk(project))
    return all(next(below, None) is not None for _ in range(most + 1))


class _ReadFiles(DefaultFilter):
    """Files of the project, and other files that were read, also in ignored directories."""

    def __init__(self, project: Path) -> None:
        # The data directory of a project may be inside it.
        super().__init__(ignore_dirs=(*DefaultFilter.ignore_dirs, ".drover"))
        self.project = project
        self.paths: frozenset[str] = frozenset()

    def __call__(self, change: Change, path: str) -> bool:
        outside = any(Path(path).is_relative_to(one) for one in self.directories[1:])
        return path in self.paths or (not outside and super().__call__(change, path))

    def note(self, files: Collection[Path] | None) -> None:
        self.paths = frozenset(map(str, files or ()))

    @property
    def directories(self) -> tuple[Path, ...]:
        """The project, and existing directories outside of it that contain files of it."""
        outside = {Path(path).parent for path in self.paths}
        others = {one for one in outside if not one.is_relative_to(self.project) and one.is_dir()}
        return (self.project, *sorted(others))


def _call(changed: Changed) -> Collection[Path] | None:
    try:
        return changed()
    except Exception:
        log.exception("project.sync_failed")
        return None
