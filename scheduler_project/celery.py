"""The Celery application; messages contain only the number of a run."""

import os
from typing import Any

from celery import Celery, signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")

app = Celery("drover")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.setup_logging.connect
def _keep_drover_logging(**_: Any) -> None:
    """A connected handler keeps Celery from configuring logging."""


@signals.celeryd_init.connect
def _install_worker(**_: Any) -> None:
    # Imported here, because only workers need these modules.
    from scheduler_project.worker import install

    install(app)
