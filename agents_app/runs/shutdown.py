"""A shutdown in three steps: nothing new, wait for what runs, tell the processes to exit."""

import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic, sleep

from agents_app.conf import CONF
from agents_app.errors import Refused, SchedulerShutdownError
from agents_app.installation import running_up
from agents_app.models import Run, Scheduler
from agents_app.runs import control

LOOK_EVERY_SECONDS = 0.2
TELL_EVERY_SECONDS = 5.0
# How long `up` may take to close its processes once nothing runs any more.
CLOSE_SECONDS = 30.0


def wait_until_idle(seconds: float | None, tell: Callable[[str], None]) -> None:
    began = told = monotonic()
    while count := running():
        passed = monotonic() - began
        if seconds is not None and passed >= seconds:
            raise SchedulerShutdownError(
                f"after {seconds:g} s {_runs(count)} still going on: stop again to wait on, "
                "or end them (manage.py stop AGENT)",
                timed_out=True,
                running_job_count=count,
            )
        if monotonic() - told >= TELL_EVERY_SECONDS:
            told = monotonic()
            tell(f"waiting: {_runs(count)} still going on")
        sleep(LOOK_EVERY_SECONDS)


def running() -> int:
    """A run whose worker is silent for longer than its lease is no reason to wait."""
    now = datetime.now(UTC)
    owned = Run.objects.filter(state=Run.State.RUNNING, worker__ended_at__isnull=True)
    return owned.filter(worker__lease_until__gt=now).count()


def finish() -> None:
    """Ends the `up` of this data directory, now that nothing runs, and waits until it is gone."""
    control.set_scheduler_state(Scheduler.State.STOPPED)
    give_up_at = monotonic() + CLOSE_SECONDS
    if process := running_up(CONF.data):
        os.kill(process, signal.SIGTERM)
    while process := running_up(CONF.data):
        if monotonic() >= give_up_at:
            raise SchedulerShutdownError(
                f"nothing runs any more, but after {CLOSE_SECONDS:g} s manage.py up is still "
                f"there: look at its output, or end it with kill {process}",
                timed_out=True,
                running_job_count=0,
            )
        sleep(LOOK_EVERY_SECONDS)


def wait_for_end(run_ids: list[int], seconds: float) -> None:
    give_up_at = monotonic() + seconds
    unfinished = Run.objects.filter(pk__in=run_ids, slot__isnull=False)
    while count := unfinished.count():
        if monotonic() >= give_up_at:
            raise Refused(f"after {seconds:g} s {_runs(count)} still going on")
        sleep(LOOK_EVERY_SECONDS)


def _runs(count: int) -> str:
    return "1 run is" if count == 1 else f"{count} runs are"
