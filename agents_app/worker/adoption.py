"""Containers outlive their worker: the next one on the machine goes on with them or ends them."""

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
    CONTAINERS,
    ENGINE,
    RUN,
    TRACE,
    EngineAway,
    Found,
    Outcome,
    OutputSink,
    RunControl,
    Runner,
    RunSpec,
    our_label,
)
from agents_app.runs import TOKEN_PREFIX, Job
from agents_app.worker.execute import Host, go_on
from agents_app.worker.lease import lives, this_host

log = structlog.get_logger("drover.adoption")
LOOK_EVERY_SECONDS = 2.0


class Adopter:
    """Looks now and then, on a thread of its own; each adopted run has another one."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._over = threading.Event()
        self._runs: list[threading.Thread] = []
        self._sweep_at = 0.0
        self._thread = threading.Thread(target=self._keep, name="adoption", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """A worker that stops lets its runs finish, and these are no tasks of Celery's."""
        self._over.set()
        for thread in [self._thread, *self._runs]:
            thread.join()

    def _keep(self) -> None:
        while True:
            try:
                self._look()
            except (DatabaseError, EngineAway) as error:
                log.debug("adoption.not_now", error=str(error))
            except Exception:
                log.exception("adoption.failed")
            close_old_connections()
            if self._over.wait(LOOK_EVERY_SECONDS):
                return

    def _look(self) -> None:
        if self._host.draining.is_set():
            return
        self._runs = [thread for thread in self._runs if thread.is_alive()]
        for run in orphaned_runs():
            if program := adopt(run, self._host):
                thread = threading.Thread(target=program, name=f"run-{run.pk}", daemon=True)
                self._runs.append(thread)
                thread.start()
        if time.monotonic() >= self._sweep_at and uses_containers():
            self._sweep_at = time.monotonic() + CONF.reconcile_seconds
            sweep()


# --- runs whose worker is gone --------------------------------------------------------------


def orphaned_runs() -> list[Run]:
    """Their containers had all they needed, so that they have gone on without a worker."""
    running = Run.objects.filter(state=Run.State.RUNNING, slot__isnull=False)
    contained = running.exclude(container="").select_related("worker", "work_item", "agent")
    return [run for run in contained if is_gone(run.worker)]


def is_gone(worker: Worker | None) -> bool:
    """Declared dead, or provably so."""
    if worker is None or worker.ended_at is not None:
        return True
    return worker.host == this_host() and not lives(worker)


def adopt(run: Run, host: Host) -> Callable[[], None] | None:
    """The run belongs to this worker now; what is returned sees it to its end.

    None: another worker was first, or its container is not on this machine."""
    if ENGINE.state(run.container) is None:
        return None
    token = ENGINE.environment(run.container).get("DROVER_RUN_TOKEN", "")
    # Before the row says so: a worker loses a run of its own that it does not know.
    host.live[run.pk] = RunControl()
    now = host.clock()
    try:
        mine = in_transaction(partial(_take_over, run, host.worker_id, now))
    except BaseException:
        del host.live[run.pk]
        raise
    if not mine:
        del host.live[run.pk]
        return None
    left = (run.deadline_at - now).total_seconds() if run.deadline_at else 0.0
    return partial(_go_on, _job(run, token), host, _Container(run.container, max(0.0, left)))


def _go_on(job: Job, host: Host, adopted: Runner) -> None:
    try:
        go_on(job, host, adopted)
    finally:
        connections.close_all()


def _take_over(run: Run, worker_id: int, now: datetime) -> bool:
    mine = Run.objects.filter(pk=run.pk, state=Run.State.RUNNING, worker=run.worker_id)
    if not mine.update(worker=worker_id):
        return False
    detail = f"worker {worker_id} goes on for worker {run.worker_id}"
    journal.record(
        journal.JournalEntry("run.adopted", now, run.tenant_id, run.agent_id, run.pk, detail)
    )
    return True


def _job(run: Run, token: str) -> Job:
    """With its token, which must not be seen in what it prints."""
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
        secret=token.removeprefix(f"{TOKEN_PREFIX}{run.pk}_"),
    )


@dataclass(frozen=True, slots=True)
class _Container:
    """A runner for one that runs already."""

    container: str
    left_seconds: float

    def run(self, spec: RunSpec, control: RunControl, sink: OutputSink) -> Outcome:
        return CONTAINERS.adopt(self.container, spec, self.left_seconds, control, sink)

    def end(self) -> None:
        with contextlib.suppress(EngineAway):
            ENGINE.remove(self.container)


# --- containers whose run is over -----------------------------------------------------------


def uses_containers() -> bool:
    """Whoever has none never loads what speaks to the engine."""
    return Agent.objects.filter(runtime__type="container").exists()


def sweep() -> int:
    """Removes containers of this installation whose run does not go on.

    A row says `running` before its container is made, so what was found first and has no such
    row now has none any more."""
    found = ENGINE.find(our_label())
    rows = Run.objects.filter(pk__in=[_run_id(each) for each in found], state=Run.State.RUNNING)
    running = set(rows.values_list("pk", "trace_id"))
    over = [each for each in found if (_run_id(each), each.labels.get(TRACE)) not in running]
    for each in over:
        ENGINE.remove(each.container)
        log.warning("container.removed", run_id=_run_id(each), container=each.container[:12])
    return len(over)


def _run_id(found: Found) -> int:
    text = found.labels.get(RUN, "")
    return int(text) if text.isascii() and text.isdigit() else 0
