"""The Celery application: a message means "look at this row" and nothing more."""

import os
from typing import Any

from celery import Celery, signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")

app = Celery("drover")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.setup_logging.connect
def _keep_our_logging(**_: Any) -> None:
    """Celery leaves logging alone when somebody answers this."""


@signals.celeryd_init.connect
def _become_a_drover_worker(**_: Any) -> None:
    # Here, not above: only workers should pay for what a worker needs.
    from scheduler_project.worker import install

    install(app)
