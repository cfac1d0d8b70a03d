"""A worker executes a run, and goes on with the agent's next one while its slot stays busy."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from agents_app.budgets import holds
from agents_app.database import in_transaction
from agents_app.events import relay
from agents_app.launch import leftover_workdirs, remove_workdirs
from agents_app.models import Run
from agents_app.output import Transcript
from agents_app.runners import RunControl, Runner
from agents_app.runs import Ending, Job, dispatch, lifecycle
from agents_app.signals import keep_signals, messages
from agents_app.worker.perform import perform

log = structlog.get_logger("drover.execute")
# After this much the slot goes back through the queue, so that agents share the threads.
MOST_RUNS_IN_A_ROW = 50
MOST_SECONDS_IN_A_ROW = 30.0


@dataclass(frozen=True, slots=True)
class Host:
    """The worker process a run is executed in."""

    worker_id: int
    clock: Callable[[], datetime]
    live: dict[int, RunControl] = field(default_factory=dict)
    draining: threading.Event = field(default_factory=threading.Event)


def execute(run_id: int, host: Host) -> int:
    """Returns how many runs were executed: none if somebody else has started it already."""
    if host.draining.is_set():
        return 0
    job = in_transaction(lambda: lifecycle.start(run_id, host.worker_id, host.clock()))
    if job is None:
        log.debug("hint.claim_noop", run_id=run_id)
    done, give_back_at = 0, time.monotonic() + MOST_SECONDS_IN_A_ROW
    while job is not None:
        done += 1
        tired = done >= MOST_RUNS_IN_A_ROW or time.monotonic() >= give_back_at
        job = _run(job, host, hand_over=not tired)
    return done


def go_on(job: Job, host: Host, adopted: Runner) -> None:
    """A run that another worker has begun ends here; its control is in `host.live` already."""
    _run(job, host, hand_over=False, adopted=adopted)


def execute_called(run_id: int, host: Host) -> None:
    """For callers that wait on this host: also while it drains, because what runs may finish."""
    job = in_transaction(lambda: lifecycle.start(run_id, host.worker_id, host.clock()))
    if job is not None:
        _run(job, host, hand_over=False)


def _run(job: Job, host: Host, *, hand_over: bool, adopted: Runner | None = None) -> Job | None:
    """Perform the job and finish it; what is returned is started already."""
    transcript = Transcript(job.tenant_id, job.run_id, host.worker_id)
    control = host.live.setdefault(job.run_id, RunControl())
    try:
        ending = perform(job, control, transcript, adopted)
        hand_over = hand_over and not host.draining.is_set()
        following = _finish(job, ending, transcript, host, hand_over)
    finally:
        # Only now: a running row that its worker does not know counts as lost.
        del host.live[job.run_id]
    if ending.report is not None:
        _settle_project(job, host)
    if following is None:
        dispatch.admit_under_cap(job.tenant_id, host.clock())
    elif not hand_over:
        relay.hint(following.run_id, following.agent_id)
        return None
    return following


def _finish(
    job: Job, ending: Ending, transcript: Transcript, host: Host, hand_over: bool
) -> Job | None:
    """A run that has ended must be recorded: the database may be away, but not given up on."""
    telling = host.live[job.run_id].telling

    def at_once() -> Job | None:
        return lifecycle.hand_over_at_once(job, ending, host.clock(), host.worker_id)

    def change() -> Job | None:
        transcript.store_rest()
        following = _end(job, ending, host, hand_over)
        if not telling.is_settled:
            messages.settle(job.run_id, telling.said, telling.unsaid, host.clock())
        return following

    while True:
        try:
            plain = transcript.is_stored and ending.report is None and ending.said is None
            if hand_over and plain and telling.is_settled and (following := at_once()):
                return following
            return in_transaction(change)
        except (OperationalError, InterfaceError) as error:
            # If it stays away, the lease ends, and the guard ends this process.
            log.warning("run.finish_delayed", **job.log_context, error=str(error))
            connection.close()
        except DatabaseError:
            log.exception("run.finish_refused", **job.log_context)
            transcript.forget()
            said = "the database refused what was to be said of this run"
            ending = replace(ending, error=said, report=None, said=None)
        time.sleep(1)


def _end(job: Job, ending: Ending, host: Host, hand_over: bool) -> Job | None:
    if ending.state in UNUSUAL:
        UNUSUAL[ending.state](job, ending, host.clock(), host.worker_id)
        return None
    if ending.report is not None:
        holds.book(job.run_id, ending.report, host.clock())
    if ending.said is not None:
        keep_signals(job.run_id, ending.said, host.clock(), host.worker_id)
    return lifecycle.finish(job, ending, host.clock(), host.worker_id, hand_over=hand_over)


def _settle_project(job: Job, host: Host) -> None:
    """What the run used is on disk; if the project's cap cannot be looked at, the sweep will."""
    try:
        holds.settle_tenant(job.tenant_id, host.clock())
    except DatabaseError as error:
        log.warning("budget.not_settled", tenant_id=job.tenant_id, error=str(error))


def _give_back(job: Job, ending: Ending, now: datetime, worker_id: int) -> None:
    """One row says so, not one for every time it was tried."""
    same = Run.objects.filter(state=Run.State.STOPPED, work_item=job.work_item_id)
    same.filter(error=ending.error).delete()
    lifecycle.give_back(job, ending, now, worker_id)


def _lose(job: Job, ending: Ending, now: datetime, worker_id: int) -> None:
    """What it ran in is gone, as if its worker had died."""
    mine = Run.objects.filter(pk=job.run_id, worker=worker_id, state=Run.State.RUNNING)
    for run in mine.select_related("agent"):
        lifecycle.lose(run, now, ending.error)


# How a run ends of which nobody can say how it ended.
UNUSUAL: Mapping[str, Callable[[Job, Ending, datetime, int], None]] = {
    "unavailable": _give_back,
    "lost": _lose,
}


def remove_leftover_workdirs() -> None:
    """What runs left behind whose worker died before it could tidy up; at a worker's start."""
    rooms = set(leftover_workdirs())
    going_on = Run.objects.filter(pk__in=rooms, slot__isnull=False)
    remove_workdirs(rooms - set(going_on.values_list("pk", flat=True)))
