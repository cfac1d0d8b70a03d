"""The runs of this machine's workers, for the stop of the stack; needs Django."""

from datetime import UTC, datetime

from django.db import connection
from django.db.models import QuerySet

from agents_app.models import Run
from agents_app.runs import dispatch
from agents_app.worker import this_host


def count_running() -> int:
    try:
        return _running_here().count()
    finally:
        connection.close()


def interrupt_running() -> None:
    try:
        dispatch.request_stop(_running_here(), datetime.now(UTC), "Drover was stopped")
    finally:
        connection.close()


def _running_here() -> QuerySet[Run]:
    return Run.objects.filter(
        state=Run.State.RUNNING,
        worker__host=this_host(),
        worker__ended_at__isnull=True,
    )
