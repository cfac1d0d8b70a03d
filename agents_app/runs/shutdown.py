"""The steps of a shutdown after control.begin_shutdown: wait for runs, then end the processes."""

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

POLL_SECONDS = 0.2
REPORT_SECONDS = 5.0
# The time that `up` has to end its processes after the last run.
CLOSE_SECONDS = 30.0


def wait_until_idle(seconds: float | None, report: Callable[[str], None]) -> None:
    """Wait for all running runs, and report their number every few seconds."""
    began = reported = monotonic()
    while count := count_running():
        passed = monotonic() - began
        if seconds is not None and passed >= seconds:
            raise SchedulerShutdownError(
                f"after {seconds:g} s {_runs(count)} still running: stop again to wait longer, "
                "or end them (manage.py stop AGENT)",
                timed_out=True,
                running_job_count=count,
            )
        if monotonic() - reported >= REPORT_SECONDS:
            reported = monotonic()
            report(f"waiting: {_runs(count)} still running")
        sleep(POLL_SECONDS)


def count_running() -> int:
    """Runs of live workers; a worker that is silent for longer than its lease does not count."""
    now = datetime.now(UTC)
    owned = Run.objects.filter(state=Run.State.RUNNING, worker__ended_at__isnull=True)
    return owned.filter(worker__lease_until__gt=now).count()


def stop_processes() -> None:
    """Send SIGTERM to the `up` of this data directory and wait until it has ended."""
    control.set_scheduler_state(Scheduler.State.STOPPED)
    give_up_at = monotonic() + CLOSE_SECONDS
    if process := running_up(CONF.data):
        os.kill(process, signal.SIGTERM)
    while process := running_up(CONF.data):
        if monotonic() >= give_up_at:
            raise SchedulerShutdownError(
                f"all runs have ended, but after {CLOSE_SECONDS:g} s manage.py up is still "
                f"running: read its output, or end it with kill {process}",
                timed_out=True,
                running_job_count=0,
            )
        sleep(POLL_SECONDS)


def wait_for_runs(run_ids: list[int], seconds: float) -> None:
    give_up_at = monotonic() + seconds
    unfinished = Run.objects.filter(pk__in=run_ids, slot__isnull=False)
    while count := unfinished.count():
        if monotonic() >= give_up_at:
            raise Refused(f"after {seconds:g} s {_runs(count)} still running")
        sleep(POLL_SECONDS)


def _runs(count: int) -> str:
    return "1 run is" if count == 1 else f"{count} runs are"
