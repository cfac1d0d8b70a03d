"""Executes a run in a worker, then the next runs of the agent while its slot stays busy."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from agents_app.budgets import holds
from agents_app.database import in_transaction
from agents_app.events import relay
from agents_app.launch import leftover_workdirs, remove_workdir, remove_workdirs
from agents_app.models import Run
from agents_app.output import Transcript
from agents_app.runners import CONTAINER_RUNNER, RunControl, Runner
from agents_app.runs import Ending, Job, dispatch, lifecycle
from agents_app.signals import messages, store_signals
from agents_app.worker.perform import perform

log = structlog.get_logger("drover.execute")
# Then the slot goes back through the queue, so that agents share the threads of the pool.
MAX_RUNS_IN_A_ROW = 50
MAX_SECONDS_IN_A_ROW = 30.0


@dataclass(slots=True)
class ReceivedHints:
    """The hints that a worker process has received. Several threads count: `received` may lack
    some, and only its growth matters."""

    received: int = 0
    # Ids of runs that another hint had started already; the lease adds them to the totals.
    claim_noops: deque[int] = field(default_factory=deque)


# Runs the program of a started run, or what replaces it, and returns the ending.
Performer = Callable[[Job, RunControl, Transcript, Callable[[], datetime], Runner | None], Ending]


@dataclass(frozen=True, slots=True)
class Host:
    """The worker process that executes runs; `live` has the control of each."""

    worker_id: int
    clock: Callable[[], datetime]
    live: dict[int, RunControl] = field(default_factory=dict)
    draining: threading.Event = field(default_factory=threading.Event)
    hints: ReceivedHints = field(default_factory=ReceivedHints)
    perform: Performer = perform


def execute(run_id: int, host: Host) -> int:
    """Start and execute a run and its successors; returns how many runs were executed.

    None if another worker has started the run, or if this worker is draining."""
    host.hints.received += 1
    if host.draining.is_set():
        return 0
    job = in_transaction(lambda: lifecycle.start_run(run_id, host.worker_id, host.clock()))
    if job is None:
        log.debug("hint.claim_noop", run_id=run_id)
        host.hints.claim_noops.append(run_id)
    done, give_back_at = 0, time.monotonic() + MAX_SECONDS_IN_A_ROW
    while job is not None:
        done += 1
        keep_slot = done < MAX_RUNS_IN_A_ROW and time.monotonic() < give_back_at
        job = _run(job, host, hand_over=keep_slot)
    return done


def execute_adopted(job: Job, host: Host, adopted: Runner) -> None:
    """Execute the rest of a run of a dead worker; its control must be in `host.live`."""
    _run(job, host, hand_over=False, adopted=adopted)


def execute_called(run_id: int, host: Host) -> None:
    """Execute a run that a waiting run of this host called; also while the host is draining,
    because the waiting run may finish."""
    job = in_transaction(lambda: lifecycle.start_run(run_id, host.worker_id, host.clock()))
    if job is not None:
        _run(job, host, hand_over=False)


def _run(job: Job, host: Host, *, hand_over: bool, adopted: Runner | None = None) -> Job | None:
    """Perform the job and record its end; returns the next job of the slot, already started."""
    transcript = Transcript(job.tenant_id, job.run_id, host.worker_id)
    control = host.live.setdefault(job.run_id, RunControl())
    try:
        ending = host.perform(job, control, transcript, host.clock, adopted)
        hand_over = hand_over and not host.draining.is_set()
        next_job = _finish(job, ending, transcript, host, hand_over)
    finally:
        # Not earlier: a running row that its worker does not know counts as lost.
        del host.live[job.run_id]
    _remove_remains(job, control.container)
    if ending.report is not None:
        _settle_tenant_budget(job, host)
    if next_job is None:
        dispatch.admit_under_cap(job.tenant_id, host.clock())
    elif not hand_over:
        relay.hint(next_job.run_id, next_job.agent_id)
        return None
    return next_job


def _remove_remains(job: Job, container: str) -> None:
    """Remove the workdir and the ended container of a run whose end is recorded.

    Not while the run is running: then this worker was declared dead, and the worker that adopted
    the container still reads from both. After an error the sweep removes the container, and the
    next worker that starts on this host the workdir (`remove_leftover_workdirs`)."""
    if not container:
        remove_workdir(job.run_id, job.agent_id)
        return
    try:
        adopted = Run.objects.filter(pk=job.run_id, state=Run.State.RUNNING).exists()
    except DatabaseError as error:
        log.warning("run.remains_kept", **job.log_context, error=str(error))
        connection.close()
        return
    if not adopted:
        CONTAINER_RUNNER.remove(container)
        remove_workdir(job.run_id)


def _finish(
    job: Job, ending: Ending, transcript: Transcript, host: Host, hand_over: bool
) -> Job | None:
    """Record the end of a run; repeats until the database accepts it."""
    stdin = host.live[job.run_id].stdin_messages

    def at_once() -> Job | None:
        return lifecycle.hand_over_in_one_statement(job, ending, host.clock(), host.worker_id)

    def change() -> Job | None:
        transcript.store_rest()
        next_job = _end(job, ending, host, hand_over)
        if not stdin.is_settled:
            messages.settle(job.run_id, stdin.delivered, stdin.undelivered, host.clock())
        return next_job

    while True:
        try:
            plain = transcript.is_stored and ending.stores_nothing
            if hand_over and plain and stdin.is_settled and (next_job := at_once()):
                return next_job
            return in_transaction(change)
        except (OperationalError, InterfaceError) as error:
            # If the database stays away, the lease ends, and the guard kills this process.
            log.warning("run.finish_delayed", **job.log_context, error=str(error))
            connection.close()
        except DatabaseError:
            log.exception("run.finish_refused", **job.log_context)
            transcript.drop_unstored()
            refusal = "the database refused the result of this run"
            ending = replace(
                ending, error=refusal, report=None, file_signals=None, metadata_json=None
            )
        time.sleep(1)


def _end(job: Job, ending: Ending, host: Host, hand_over: bool) -> Job | None:
    if ending.state in WITHOUT_RESULT:
        WITHOUT_RESULT[ending.state](job, ending, host.clock(), host.worker_id)
        return None
    if ending.report is not None:
        holds.record_report(job.run_id, ending.report, host.clock())
    if ending.file_signals is not None:
        store_signals(job.run_id, ending.file_signals, host.clock(), host.worker_id)
    if ending.metadata_json is not None:
        owned = Run.objects.filter(pk=job.run_id, worker=host.worker_id, state=Run.State.RUNNING)
        owned.update(metadata_json=ending.metadata_json)
    return lifecycle.finish_run(job, ending, host.clock(), host.worker_id, hand_over=hand_over)


def _settle_tenant_budget(job: Job, host: Host) -> None:
    """Compare the usage with the budget of the tenant; after a database error the sweep does."""
    try:
        holds.reevaluate_tenant(job.tenant_id, host.clock())
    except DatabaseError as error:
        log.warning("budget.not_settled", tenant_id=job.tenant_id, error=str(error))


def _give_back(job: Job, ending: Ending, now: datetime, worker_id: int) -> None:
    """Return the run to the queue; only one stopped row of its attempts is kept."""
    same = Run.objects.filter(state=Run.State.STOPPED, work_item=job.work_item_id)
    same.filter(error=ending.error).delete()
    lifecycle.give_back_run(job, ending, now, worker_id)


def _lose(job: Job, ending: Ending, now: datetime, worker_id: int) -> None:
    """The container is gone: the run is lost, as if its worker had died."""
    owned = Run.objects.filter(pk=job.run_id, worker=worker_id, state=Run.State.RUNNING)
    for run in owned.select_related("agent"):
        lifecycle.lose_run(run, now, ending.error)


# Endings without a known result of the program.
WITHOUT_RESULT: Mapping[str, Callable[[Job, Ending, datetime, int], None]] = {
    "unavailable": _give_back,
    "lost": _lose,
}


def remove_leftover_workdirs() -> None:
    """Remove the workdirs of runs whose worker died; called when a worker starts."""
    run_ids = set(leftover_workdirs())
    live = Run.objects.filter(pk__in=run_ids, slot__isnull=False)
    remove_workdirs(run_ids - set(live.values_list("pk", flat=True)))
