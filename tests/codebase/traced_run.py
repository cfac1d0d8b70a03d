"""Runs a due schedule to the end of its run in this process and records which files take part.

Started by tests/codebase/run_trace.py as `python traced_run.py CHECKOUT RESULT`, with an
environment that names a prepared installation of the checkout. This file is not a part of that
checkout, which may be an older one: it enters through beat's tick, the message in Redis, and the
Celery signals and the Celery task of a worker, which keep their names.
"""

import inspect
import json
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

TRACED = ("agents_app", "scheduler_project")


@dataclass(frozen=True)
class TracedWorker:
    """What Drover reads of the Celery worker that sends a signal."""

    hostname: str = "traced"
    concurrency: int = 1


class Recorder:
    """Records the files below the traced packages whose functions are called, in order.

    Only on this thread and on the threads that are started while it records: the lease of the
    worker and the duties of beat, which serve all runs alike, have threads of their own.
    """

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout
        self.files: list[str] = []
        self._recording = False
        self._done: set[str] = set()
        self._roots = tuple(f"{checkout / package}{os.sep}" for package in TRACED)

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        path = frame.f_code.co_filename
        if event != "call" or not self._recording or path in self._done:
            return
        if not self._is_traced(frame):
            self._done.add(path)
        elif not self._is_importing(frame):
            self._done.add(path)
            self.files.append(str(Path(path).relative_to(self.checkout)))

    def _is_traced(self, frame: FrameType) -> bool:
        return frame.f_code.co_filename.startswith(self._roots)

    def _is_importing(self, frame: FrameType | None) -> bool:
        """Whether the code is the body of a traced module or class, or was called by one."""
        while frame is not None:
            if self._is_traced(frame) and not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
                return True
            frame = frame.f_back
        return False

    def __enter__(self) -> "Recorder":
        self._recording = True
        threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        sys.setprofile(None)
        threading.setprofile(None)
        self._recording = False


def main(checkout: Path, result: Path) -> None:
    # Python put the directory of this file there; the packages are those of the checkout.
    sys.path[0] = str(checkout)
    import django

    django.setup()
    from celery import signals
    from django_celery_beat.schedulers import DatabaseScheduler

    from scheduler_project.beat import DroverScheduler
    from scheduler_project.celery import app

    app.loader.import_default_modules()
    # The parent class starts the duties, which are no part of the run.
    DatabaseScheduler.tick = lambda *_, **__: 60.0
    beat = DroverScheduler(app=app, lazy=True)
    recorder = Recorder(checkout)
    # Before the worker takes its lease, so that the thread that commits is started and recorded.
    with recorder:
        beat.tick()
    worker = TracedWorker()
    signals.celeryd_init.send(sender=worker.hostname, instance=worker, conf=app.conf, options={})
    signals.worker_init.send(sender=worker)
    run_id = _receive(app)
    with recorder:
        app.tasks["agents_app.tasks.execute_run"].apply(args=(run_id,), throw=True)
    signals.worker_shutdown.send(sender=worker)
    result.write_text(json.dumps(recorder.files))


def _receive(app: Any) -> int:
    """The id in the message that the tick sent, taken from the queue of the only agent."""
    from django.apps import apps

    agent = apps.get_model("agents_app", "Agent")._default_manager.get()
    with app.connection_for_read() as connection:
        queue = connection.SimpleQueue(f"agent.{agent.pk}")
        message = queue.get(timeout=20)
        message.ack()
        queue.close()
    (run_id,) = message.payload[0]
    return int(run_id)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
