"""Adoption: containers outlive their worker, and another worker of the machine takes them over."""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import structlog
from django.db import DatabaseError, close_old_connections, connections

from agents_app.conf import CONF
from agents_app.database import in_transaction
from agents_app.events import journal
from agents_app.models import Agent, Run, Worker
from agents_app.runners import (
    CONTAINER_RUNNER,
    DOCKER,
    RUN_LABEL,
    TRACE_LABEL,
    EngineUnavailable,
    FoundContainer,
    Outcome,
    OutputSink,
    RunControl,
    Runner,
    RunSpec,
    installation_label,
)
from agents_app.runs import TOKEN_PREFIX, Job
from agents_app.worker.execute import Host, execute_adopted
from agents_app.worker.lease import is_alive, this_host

log = structlog.get_logger("drover.adoption")
CHECK_EVERY_SECONDS = 2.0


class Adopter:
    """Looks for orphaned containers on its own thread; each adopted run has a thread, too."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._stopped = threading.Event()
        self._runs: list[threading.Thread] = []
        self._sweep_at = 0.0
        self._thread = threading.Thread(target=self._loop, name="adoption", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wait for the adopted runs, which Celery does not know, when the worker stops."""
        self._stopped.set()
        for thread in [self._thread, *self._runs]:
            thread.join()

    def _loop(self) -> None:
        while True:
            try:
                self._adopt_and_sweep()
            except (DatabaseError, EngineUnavailable) as error:
                log.debug("adoption.not_now", error=str(error))
            except Exception:
                log.exception("adoption.failed")
            close_old_connections()
            if self._stopped.wait(CHECK_EVERY_SECONDS):
                return

    def _adopt_and_sweep(self) -> None:
        if self._host.draining.is_set():
            return
        self._runs = [thread for thread in self._runs if thread.is_alive()]
        for run in orphaned_runs():
            if execute_rest := adopt(run, self._host):
                thread = threading.Thread(target=execute_rest, name=f"run-{run.pk}", daemon=True)
                self._runs.append(thread)
                thread.start()
        if time.monotonic() >= self._sweep_at and uses_containers():
            self._sweep_at = time.monotonic() + CONF.reconcile_seconds
            sweep()


# --- runs of dead workers -------------------------------------------------------------------


def orphaned_runs() -> list[Run]:
    """Running runs in containers whose worker is dead."""
    running = Run.objects.filter(state=Run.State.RUNNING, slot__isnull=False)
    contained = running.exclude(container="").select_related("worker", "work_item", "agent")
    return [run for run in contained if is_dead(run.worker)]


def is_dead(worker: Worker | None) -> bool:
    """Declared dead, or a dead process of this host."""
    if worker is None or worker.ended_at is not None:
        return True
    return worker.host == this_host() and not is_alive(worker)


def adopt(run: Run, host: Host) -> Callable[[], None] | None:
    """Make the run one of this worker; returns the function that executes the rest of it.

    None if another worker adopted it first, or if its container is not on this machine."""
    if DOCKER.state(run.container) is None:
        return None
    token = DOCKER.environment(run.container).get("DROVER_RUN_TOKEN", "")
    # Before the update: a run of this worker that is not in `live` would count as lost.
    control = host.live[run.pk] = RunControl()
    if run.stop_requested_at:
        # Here, because the container may have ended since the request.
        control.stop(run.error or "stopped")
    now = host.clock()
    try:
        adopted = in_transaction(partial(_take_over, run, host.worker_id, now))
    except BaseException:
        del host.live[run.pk]
        raise
    if not adopted:
        del host.live[run.pk]
        return None
    left = (run.deadline_at - now).total_seconds() if run.deadline_at else 0.0
    return partial(_execute_rest, _job(run, token), host, _Container(run.container, max(0.0, left)))


def _execute_rest(job: Job, host: Host, adopted: Runner) -> None:
    try:
        execute_adopted(job, host, adopted)
    finally:
        connections.close_all()


def _take_over(run: Run, worker_id: int, now: datetime) -> bool:
    unchanged = Run.objects.filter(pk=run.pk, state=Run.State.RUNNING, worker=run.worker_id)
    if not unchanged.update(worker=worker_id):
        return False
    detail = f"worker {worker_id} adopted the run of worker {run.worker_id}"
    journal.record(
        journal.JournalEntry("run.adopted", now, run.tenant_id, run.agent_id, run.pk, detail)
    )
    return True


def _job(run: Run, token: str) -> Job:
    """The job of an adopted run. The token is needed to remove it from the output."""
    return Job(
        run_id=run.pk,
        tenant_id=run.tenant_id,
        agent_id=run.agent_id,
        work_item_id=run.work_item_id,
        schedule_id=run.schedule_id,
        trigger=run.trigger,
        attempt=run.attempt,
        rerun=run.rerun,
        revision=run.agent.revision,
        timeout_seconds=run.agent.timeout_seconds,
        prompt=run.work_item.prompt,
        context=run.work_item.context,
        requested_by=run.requested_by,
        trace_id=run.trace_id,
        depth=run.depth,
        parent_run_id=run.parent_run_id,
        agent=run.agent.name,
        firing_id=run.work_item.firing_id,
        secret=token.removeprefix(f"{TOKEN_PREFIX}{run.pk}_"),
    )


@dataclass(frozen=True, slots=True)
class _Container:
    """A runner for a container that runs already."""

    container: str
    left_seconds: float

    def run(self, spec: RunSpec, control: RunControl, sink: OutputSink) -> Outcome:
        return CONTAINER_RUNNER.adopt(self.container, spec, self.left_seconds, control, sink)

    def end(self) -> None:
        with contextlib.suppress(EngineUnavailable):
            DOCKER.remove(self.container)


# --- containers of ended runs ---------------------------------------------------------------


def uses_containers() -> bool:
    """Whether any agent uses containers; otherwise the Docker SDK is never loaded."""
    return Agent.objects.filter(runtime__type="container").exists()


def sweep() -> int:
    """Remove containers of this installation whose run is not running; returns how many.

    Containers are listed before the rows are read: a row is `running` before its container is
    created, so a container without such a row is no longer needed."""
    found = DOCKER.find(installation_label())
    rows = Run.objects.filter(pk__in=[_run_id(each) for each in found], state=Run.State.RUNNING)
    running = set(rows.values_list("pk", "trace_id"))
    over = [each for each in found if (_run_id(each), each.labels.get(TRACE_LABEL)) not in running]
    for each in over:
        DOCKER.remove(each.container)
        log.warning("container.removed", run_id=_run_id(each), container=each.container[:12])
    return len(over)


def _run_id(found: FoundContainer) -> int:
    text = found.labels.get(RUN_LABEL, "")
    return int(text) if text.isascii() and text.isdigit() else 0
