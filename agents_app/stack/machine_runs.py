"""The runs of this machine's workers and the state of a drain, for the stop of the stack.

Needs Django.
"""

from datetime import UTC, datetime

from django.db import connection
from django.db.models import QuerySet

from agents_app.models import Run, Scheduler, Worker
from agents_app.runs import control, dispatch
from agents_app.worker import this_host

S = Scheduler.State


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


def record_draining() -> None:
    """Record a drain that a signal began; other hosts continue if they have workers."""
    now = datetime.now(UTC)
    try:
        running = Scheduler.objects.filter(pk=1, state=S.RUNNING).exists()
        if running and not _others_work(now):
            control.begin_drain("a signal", now, keep_queue=True)
    finally:
        connection.close()


def record_stopped() -> None:
    """Record that all processes have exited, unless other hosts have workers."""
    now = datetime.now(UTC)
    try:
        if not _others_work(now):
            control.record_stopped(now, was=[S.RUNNING, S.DRAINING])
    finally:
        connection.close()


def _others_work(now: datetime) -> bool:
    live = Worker.objects.filter(ended_at__isnull=True, lease_until__gt=now)
    return live.exclude(host=this_host()).exists()


def _running_here() -> QuerySet[Run]:
    return Run.objects.filter(
        state=Run.State.RUNNING,
        worker__host=this_host(),
        worker__ended_at__isnull=True,
    )
