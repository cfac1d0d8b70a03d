"""Runs a schedule at once, outside of its times, and waits for the end of its run."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast
from uuid import uuid4

from agents_app.conf import CONF
from agents_app.errors import ScheduleTriggerError
from agents_app.events import relay
from agents_app.models import Firing, Run, Schedule, Scheduler, WorkItem
from agents_app.runs import control, dispatch, read_scheduler
from agents_app.scheduler.executors import new_executor
from agents_app.scheduler.schedule_rows import find_schedule
from agents_app.scheduler.values import (
    RunScheduleOptions,
    ScheduleRunResult,
    ScheduleSkipReason,
    default_logger,
)
from agents_app.schedules import due
from agents_app.work_sources import serve_work_sources
from agents_app.worker import utc_now

POLL_SECONDS = 0.05
# How often queued work, such as a retry, is admitted without an engine.
ADMIT_SECONDS = 1.0
ENDED = {
    WorkItem.State.DONE,
    WorkItem.State.FAILED,
    WorkItem.State.DROPPED,
    WorkItem.State.CLEARED,
}


def run_now(
    agent: str, name: str, options: RunScheduleOptions, *, has_engine: bool
) -> ScheduleRunResult:
    """Fire the schedule now; without an engine a worker is started for this run."""
    schedule = find_schedule(agent, name)
    if has_engine:
        return _fire_and_wait(schedule, options, has_engine=True)
    with _own_executor(options):
        return _fire_and_wait(schedule, options, has_engine=False)


@contextmanager
def _own_executor(options: RunScheduleOptions) -> Iterator[None]:
    name = f"embedded-{uuid4().hex[:12]}"
    logger = options.logger or default_logger()
    was_stopped = read_scheduler(utc_now()).state == Scheduler.State.STOPPED
    control.start_scheduler_if_stopped(utc_now())
    executor = new_executor(name, CONF.project, logger, options.on_trigger)
    executor.keep_alive()
    relay.use_transport(executor)
    try:
        yield
    finally:
        relay.drain()
        executor.drain()
        relay.use_transport(None)
        # A run that is unfinished after the timeout goes on.
        if executor.wait(CONF.grace_seconds) and was_stopped:
            control.record_stopped(utc_now(), was=[Scheduler.State.RUNNING])


def _fire_and_wait(
    schedule: Schedule, options: RunScheduleOptions, *, has_engine: bool
) -> ScheduleRunResult:
    context = {"agent": schedule.agent.name, "schedule": schedule.name}
    firing_id = due.fire_now(schedule.pk, utc_now())
    if firing_id is None:
        raise ScheduleTriggerError(f"{schedule}: has fired at this instant already", context)
    context |= {"firing_id": str(firing_id)}
    began = admitted = time.monotonic()
    while (result := _result(schedule, firing_id, context)) is None:
        if options.timeout is not None and time.monotonic() - began >= options.timeout:
            raise ScheduleTriggerError(
                f"{schedule}: its run has not ended after {options.timeout:g} s, and goes on",
                context,
            )
        if not has_engine and time.monotonic() - admitted >= ADMIT_SECONDS:
            admitted = time.monotonic()
            dispatch.admit_waiting(schedule.agent_id, utc_now())
            serve_work_sources(utc_now())
        time.sleep(POLL_SECONDS)
    return result


def _result(
    schedule: Schedule, firing_id: int, context: dict[str, str]
) -> ScheduleRunResult | None:
    """None while the firing or its work is unfinished."""
    firing = Firing.objects.get(pk=firing_id)
    names = (schedule.agent.name, schedule.name)
    if firing.outcome == Firing.Outcome.FAILED:
        raise ScheduleTriggerError(
            f"{schedule}: firing {firing_id} could not be turned into work; the log has the error",
            context,
        )
    if firing.outcome == Firing.Outcome.SKIPPED:
        reason = cast("ScheduleSkipReason", str(firing.reason))
        return ScheduleRunResult(*names, success=False, skip_reason=reason)
    item = WorkItem.objects.filter(firing=firing_id).first()
    if item is None or item.state not in ENDED:
        return None
    return _result_of_work(schedule, item)


def _result_of_work(schedule: Schedule, item: WorkItem) -> ScheduleRunResult:
    run = Run.objects.filter(work_item=item).order_by("-pk").first()
    names = (schedule.agent.name, schedule.name)
    if run is None:
        return ScheduleRunResult(*names, success=False, error=item.reason)
    return ScheduleRunResult(
        *names,
        success=item.state == WorkItem.State.DONE,
        run_id=run.pk,
        state=str(run.state),
        exit_code=run.exit_code,
        error=run.error,
        return_value=run.return_value,
        started_at=run.started_at,
        finished_at=run.finished_at,
        work_item=_work_item(schedule, item),
    )


def _work_item(schedule: Schedule, item: WorkItem) -> dict[str, Any] | None:
    """The item of the work source, which is the context of the run."""
    if not item.context or (schedule.work_source or schedule.agent.work_source) is None:
        return None
    read: dict[str, Any] = json.loads(item.context)
    return read
