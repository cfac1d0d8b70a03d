"""The project's Celery application, which tells `up` when it serves."""

import warnings

from celery import signals

from agents_app.stack.ready import tell_ready
from scheduler_project.celery import app

signals.worker_ready.connect(tell_ready, weak=False)
signals.beat_init.connect(tell_ready, weak=False)
# Root may run agents as other users; Celery's warning is about pickle, which is switched off.
warnings.filterwarnings("ignore", "You're running the worker with superuser privileges")

__all__ = ["app"]
