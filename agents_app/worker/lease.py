"""The lease of a worker process: if it is not renewed in time, the runs of the worker are lost."""

import os
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import psutil
import structlog
from django.db import DatabaseError, close_old_connections

from agents_app.conf import CONF
from agents_app.database import SCHEMA_CHECK_SECONDS, execute, in_transaction, schema_problem
from agents_app.events import add_to_totals
from agents_app.models import Run, Worker
from agents_app.runners import (
    TICKS_PER_SECOND,
    RunControl,
    become_subreaper,
    open_guard_pipe,
    read_process,
)
from agents_app.runs import lifecycle
from agents_app.signals import messages
from agents_app.worker.execute import Host, Performer
from agents_app.worker.extra_threads import ExtraThreads
from agents_app.worker.perform import perform

log = structlog.get_logger("drover.lease")
CHECK_EVERY_SECONDS = 0.5
# Plain SQL: of short runs, each is written once, and the ORM took a tenth of the time of a run.
_RECORD_PLACE = """
UPDATE drover_run SET pid = %s, container = %s, sandbox = %s WHERE id = %s AND slot IS NOT NULL"""
Place = tuple[int | None, str, str]  # the pid, the container and the sandbox of a run
INITIAL_PID_NAMESPACE = 0xEFFFFFFC  # inode of the kernel's initial pid namespace


def utc_now() -> datetime:
    return datetime.now(UTC)


def boot_id() -> str:
    """Changes with every reboot, so that a pid from before the reboot is not taken as alive."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return str(psutil.boot_time())


def booted_at() -> datetime:
    return datetime.fromtimestamp(psutil.boot_time(), UTC)


def process_started(pid: int) -> float | None:
    """Start time in seconds since boot, independent of the clock; None if there is no such pid."""
    if (proc := read_process(pid)) is not None:
        return None if proc.dead else proc.start_ticks / TICKS_PER_SECOND
    try:
        return None if Path("/proc/self/stat").exists() else psutil.Process(pid).create_time()
    except psutil.Error:
        return None


def is_alive(worker: Worker) -> bool:
    """Whether the worker's process lives: compares boot and start time, because pids are reused."""
    started = process_started(worker.pid) if worker.boot_id == boot_id() else None
    return started is not None and abs(started - worker.pid_started) < 1


def this_host() -> str:
    """Host name and pid namespace: containers may share the name, but have pids of their own."""
    name = socket.gethostname()
    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
    except OSError:
        return name
    return name if namespace == INITIAL_PID_NAMESPACE else f"{name}:{namespace}"


class Lease:
    """Renews the lease on its own thread, from the start of the worker to its end. The thread also
    passes stop requests and messages to the runs.

    With `performer` the runs have no programs, and the process is not Drover's: it is not killed
    when the lease is lost, but starts no further runs."""

    def __init__(
        self,
        name: str,
        concurrency: int,
        clock: Callable[[], datetime] = utc_now,
        performer: Performer | None = None,
    ):
        self.clock = clock
        self.owns_process = performer is None
        self.guard_pipe = open_guard_pipe()
        if self.owns_process:
            become_subreaper()
        worker = in_transaction(lambda: self._register(name, concurrency))
        self.host = Host(worker.pk, clock, perform=performer or perform)
        self.extra_threads = ExtraThreads(self.host, concurrency)
        self.guard_pipe.lease_renewed()
        self._stopped = threading.Event()
        self._recorded: dict[int, Place] = {}
        self._containers: set[str] = set()
        self._thread = threading.Thread(target=self._loop, name="lease", daemon=True)
        self._thread.start()

    def drain(self) -> None:
        """Start no further runs; running ones keep their lease.

        Called in a signal handler, which may interrupt a query: it must not use the database.
        """
        self.host.draining.set()

    def end(self) -> None:
        # Called runs may outlive their callers, and the pool does not know these threads.
        self.extra_threads.join()
        self._stopped.set()
        self._thread.join(timeout=5)
        self._set_state(Worker.State.STOPPED, ended_at=self.clock())

    def _register(self, name: str, concurrency: int) -> Worker:
        now = self.clock()
        return Worker.objects.create(
            name=name,
            host=this_host(),
            boot_id=boot_id(),
            pid=os.getpid(),
            pid_started=process_started(os.getpid()) or 0,
            concurrency=concurrency,
            started_at=now,
            lease_until=now + timedelta(seconds=CONF.lease_seconds),
        )

    def _set_state(self, state: str, **columns: datetime) -> None:
        worker = Worker.objects.filter(pk=self.host.worker_id, ended_at__isnull=True)
        try:
            in_transaction(lambda: worker.update(state=state, **columns))
        except DatabaseError as error:
            log.warning("worker.state_not_recorded", state=state, error=str(error))

    def _loop(self) -> None:
        renew_at = time.monotonic() + CONF.heartbeat_seconds
        check_schema_at = time.monotonic() + SCHEMA_CHECK_SECONDS
        draining_recorded = False
        while not self._stopped.wait(CHECK_EVERY_SECONDS):
            if self.host.draining.is_set() and not draining_recorded:
                draining_recorded = True
                self._set_state(Worker.State.DRAINING)
            try:
                if self.host.live or self._containers:
                    self._serve_runs()
                    self.extra_threads.serve(self.clock())
                if time.monotonic() >= check_schema_at:
                    self._drain_before_newer_schema()
                    check_schema_at = time.monotonic() + SCHEMA_CHECK_SECONDS
                if time.monotonic() >= renew_at:
                    self._renew()
                    renew_at = time.monotonic() + CONF.heartbeat_seconds
            except DatabaseError as error:
                # Without renewals the guard kills this process after a while.
                log.warning("lease.not_renewed", error=str(error))
                close_old_connections()

    def _drain_before_newer_schema(self) -> None:
        """A worker of an older version ends its runs and starts no further ones.

        It does not exit: `up` would start the same version again and again.
        """
        if not self.host.draining.is_set() and (problem := schema_problem()):
            log.error("schema.differs", problem=problem)
            self.host.draining.set()

    def _renew(self) -> None:
        lease_until = self.clock() + timedelta(seconds=CONF.lease_seconds)
        worker = Worker.objects.filter(pk=self.host.worker_id, ended_at__isnull=True)
        if in_transaction(lambda: worker.update(lease_until=lease_until)):
            self.guard_pipe.lease_renewed()
            self._lose_unknown()
            self._count_claim_noops()
            return
        # The worker was declared dead, and its runs may belong to other workers: end at once.
        # The guard kills the remaining processes.
        log.error("lease.fenced", worker_id=self.host.worker_id)
        if self.owns_process:
            os.kill(os.getpid(), 9)
        self.host.draining.set()
        self._stopped.set()

    def _count_claim_noops(self) -> None:
        """Add the hints without effect to the totals; they are kept if the database fails."""
        noops = self.host.hints.claim_noops
        if not (count := len(noops)):
            return
        try:
            in_transaction(lambda: add_to_totals({("claim_noop",): count}))
        except DatabaseError as error:
            # The lease is renewed: only the total is late.
            log.warning("totals.not_added", error=str(error))
            close_old_connections()
            return
        for _ in range(count):
            noops.popleft()

    def _lose_unknown(self) -> None:
        """Lose runs of this worker that it does not execute: the connection broke after the commit
        of their start."""
        now = self.clock()
        earlier = now - timedelta(seconds=CONF.lease_seconds)
        owned = Run.objects.filter(worker=self.host.worker_id, state=Run.State.RUNNING)
        unknown = owned.filter(started_at__lt=earlier).exclude(pk__in=list(self.host.live))
        for run in unknown.select_related("agent"):
            in_transaction(
                partial(lifecycle.lose_run, run, now, "lost: the worker never confirmed the start")
            )

    def _serve_runs(self) -> None:
        """Pass stop requests and messages to the live runs; record their pids and containers."""
        controls = dict(self.host.live)
        # First, because the database may be away: the guard must know the containers.
        containers = {each.created_container for each in controls.values()} - {""}
        if containers != self._containers:
            self._containers = containers
            self.guard_pipe.set_containers(containers)
        asked = Run.objects.filter(pk__in=list(controls), stop_requested_at__isnull=False)
        for run_id, reason in asked.values_list("pk", "error"):
            controls[run_id].stop(reason or "stopped")
        self._exchange_messages(controls)
        new = {
            run_id: (control.pid, control.container, control.sandbox)
            for run_id, control in controls.items()
            # Hooks and the program have different pids.
            if (control.pid or control.container)
            and self._recorded.get(run_id) != (control.pid, control.container, control.sandbox)
        }
        self._recorded = {k: v for k, v in self._recorded.items() if k in controls} | new
        if new:
            in_transaction(partial(_record_places, new))

    def _exchange_messages(self, controls: dict[int, RunControl]) -> None:
        """Record delivered messages, and queue new ones for programs that have read all others."""
        queues = {run_id: control.stdin_messages for run_id, control in controls.items()}
        for run_id, queue in queues.items():
            if delivered := queue.delivered:
                messages.record_delivered(run_id, delivered, self.clock())
                queue.forget(delivered)
        # Only this thread adds messages, so a settled queue stays settled.
        ready = [run_id for run_id, queue in queues.items() if queue.is_open and queue.is_settled]
        for run in Run.objects.filter(pk__in=ready, state=Run.State.RUNNING) if ready else ():
            queue = queues[run.pk]
            refused = [
                message.pk
                for message in messages.take(run)
                if not queue.add(message.pk, messages.as_line(message.text))
            ]
            messages.give_back(run.pk, refused)


def _record_places(places: dict[int, Place]) -> None:
    for run_id, place in places.items():
        execute(_RECORD_PLACE, [*place, run_id])


_lease: Lease | None = None


def take_lease(name: str, concurrency: int) -> Lease:
    """Take the lease of this worker process; once, before its first task."""
    global _lease
    _lease = Lease(name, concurrency)
    return _lease


def current_host() -> Host:
    assert _lease is not None, "runs are executed by workers, which take a lease when they start"
    return _lease.host
