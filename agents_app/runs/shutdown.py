"""A drain: no run starts, running runs finish, then all processes exit."""

from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic, sleep

from agents_app.conf import CONF, PROGRAM
from agents_app.errors import Refused, SchedulerShutdownError
from agents_app.installation import drain_up, running_up
from agents_app.models import Run, Scheduler
from agents_app.runs import control

POLL_SECONDS = 0.2
REPORT_SECONDS = 5.0
# The time that `up` has to end its processes after the last run.
CLOSE_SECONDS = 30.0
S = Scheduler.State


def begin_drain(by: str, now: datetime, *, keep_queue: bool) -> int:
    """Commit the state `draining` and ask `up` to exit when the last run has ended.

    Returns the number of cleared work items. The `up` of another host is asked by its beat.
    """
    cleared = control.begin_drain(by, now, keep_queue=keep_queue)
    drain_up(CONF.data)
    return cleared


def follow_drain(now: datetime) -> None:
    """Called by beat: pass a drain on to the `up` of this host.

    Without `up` nothing exits, and the drain is over when no run is running.
    """
    state = Scheduler.objects.filter(pk=1).values_list("state", flat=True).first()
    if state in {None, S.RUNNING} or drain_up(CONF.data):
        return
    if state == S.DRAINING and not count_running():
        control.record_stopped(now, was=[S.DRAINING])


def wait_until_idle(seconds: float | None, report: Callable[[str], None]) -> None:
    """Wait for all running runs, and report their number every few seconds."""
    began = reported = monotonic()
    while count := count_running():
        passed = monotonic() - began
        if seconds is not None and passed >= seconds:
            raise SchedulerShutdownError(
                f"after {seconds:g} s {_runs(count)} still running: the drain continues, and "
                f"Drover exits when they have ended (wait with {PROGRAM} stop, or end them with "
                f"{PROGRAM} stop AGENT)",
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


def wait_until_stopped(now: datetime) -> None:
    """Wait until the `up` of this data directory has exited; without `up` the drain is over."""
    give_up_at = monotonic() + CLOSE_SECONDS
    while process := running_up(CONF.data):
        if monotonic() >= give_up_at:
            raise SchedulerShutdownError(
                f"all runs have ended, but after {CLOSE_SECONDS:g} s {PROGRAM} up is still "
                f"running: read its output, or end it with kill {process}",
                timed_out=True,
                running_job_count=0,
            )
        sleep(POLL_SECONDS)
    control.record_stopped(now, was=[S.DRAINING])


def wait_for_runs(run_ids: list[int], seconds: float) -> None:
    give_up_at = monotonic() + seconds
    unfinished = Run.objects.filter(pk__in=run_ids, slot__isnull=False)
    while count := unfinished.count():
        if monotonic() >= give_up_at:
            raise Refused(f"after {seconds:g} s {_runs(count)} still running")
        sleep(POLL_SECONDS)


def _runs(count: int) -> str:
    return "1 run is" if count == 1 else f"{count} runs are"
