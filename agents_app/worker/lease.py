"""A worker process and its lease: while it renews, its runs are its own; else they are lost."""

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
from agents_app.database import in_transaction
from agents_app.models import Run, Worker
from agents_app.runners import TICKS_PER_SECOND, RunControl, become_subreaper, look_at, open_line
from agents_app.runs import lifecycle
from agents_app.signals import messages
from agents_app.worker.execute import Host
from agents_app.worker.extra_threads import ExtraThreads

log = structlog.get_logger("drover.lease")
LOOK_EVERY_SECONDS = 0.5
Where = tuple[int | None, str]  # a process or a container
FIRST_PID_SPACE = 0xEFFFFFFC  # the kernel's number for the one outside all containers


def utc_now() -> datetime:
    return datetime.now(UTC)


def boot_id() -> str:
    """Another value after every reboot, so that an old pid is never taken for a living one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return str(psutil.boot_time())


def process_started(pid: int) -> float | None:
    """Seconds since boot, which setting the clock does not change; None if there is no such pid."""
    if (proc := look_at(pid)) is not None:
        return None if proc.dead else proc.start_ticks / TICKS_PER_SECOND
    try:
        return None if Path("/proc/self/stat").exists() else psutil.Process(pid).create_time()
    except psutil.Error:
        return None


def lives(worker: Worker) -> bool:
    """The same process, not just the same number: pids are reused, and reboots happen."""
    started = process_started(worker.pid) if worker.boot_id == boot_id() else None
    return started is not None and abs(started - worker.pid_started) < 1


def this_host() -> str:
    """Where pids mean the same: containers may share a name, but not a space of pids."""
    name = socket.gethostname()
    try:
        space = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
    except OSError:
        return name
    return name if space == FIRST_PID_SPACE else f"{name}:{space}"


class Lease:
    """Runs on a thread of its own from the start of a worker to its end."""

    def __init__(self, name: str, concurrency: int, clock: Callable[[], datetime] = utc_now):
        self.clock = clock
        self.line = open_line()
        become_subreaper()
        worker = in_transaction(lambda: self._register(name, concurrency))
        self.host = Host(worker.pk, clock)
        self.spares = ExtraThreads(self.host, concurrency)
        self.line.renewed()
        self._over = threading.Event()
        self._known: dict[int, Where] = {}
        self._made: set[str] = set()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._thread.start()

    def drain(self) -> None:
        """No further run is begun here; those that go on keep their lease.

        Called in a signal handler, which may have interrupted a query: no database here.
        """
        self.host.draining.set()

    def end(self) -> None:
        # What was called may outlive its caller; the pool knows nothing of these threads.
        self.spares.join()
        self._over.set()
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

    def _keep(self) -> None:
        renew_at = time.monotonic() + CONF.renew_seconds
        told = False
        while not self._over.wait(LOOK_EVERY_SECONDS):
            if self.host.draining.is_set() and not told:
                told = True
                self._set_state(Worker.State.DRAINING)
            try:
                if self.host.live or self._made:
                    self._look()
                    self.spares.serve(self.clock())
                if time.monotonic() >= renew_at:
                    self._renew()
                    renew_at = time.monotonic() + CONF.renew_seconds
            except DatabaseError as error:
                # Not renewed, so the guard is not told: if this lasts it ends everything here.
                log.warning("lease.not_renewed", error=str(error))
                close_old_connections()

    def _renew(self) -> None:
        lease_until = self.clock() + timedelta(seconds=CONF.lease_seconds)
        mine = Worker.objects.filter(pk=self.host.worker_id, ended_at__isnull=True)
        if in_transaction(lambda: mine.update(lease_until=lease_until)):
            self.line.renewed()
            self._lose_unknown()
            return
        # Declared dead while it was away: its runs belong to others now. The guard ends the rest.
        log.error("lease.fenced", worker_id=self.host.worker_id)
        os.kill(os.getpid(), 9)

    def _lose_unknown(self) -> None:
        """A start whose commit was not heard of, because the connection broke: nobody runs it."""
        now = self.clock()
        long_ago = now - timedelta(seconds=CONF.lease_seconds)
        mine = Run.objects.filter(worker=self.host.worker_id, state=Run.State.RUNNING)
        unknown = mine.filter(started_at__lt=long_ago).exclude(pk__in=list(self.host.live))
        for run in unknown.select_related("agent"):
            in_transaction(
                partial(lifecycle.lose, run, now, "lost: the worker never confirmed the start")
            )

    def _look(self) -> None:
        """People's wishes reach the runs; where the runs are reaches people, and a next worker."""
        controls = dict(self.host.live)
        # First, while the database may be away: the guard must know what dies with this worker.
        made = {control.made for control in controls.values() if control.made}
        if made != self._made:
            self._made = made
            self.line.holds(made)
        asked = Run.objects.filter(pk__in=list(controls), stop_requested_at__isnull=False)
        for run_id, reason in asked.values_list("pk", "error"):
            controls[run_id].stop(reason or "stopped")
        self._tell(controls)
        new = {
            run_id: (control.pid, control.container)
            for run_id, control in controls.items()
            # Hooks come before and after the program, each with a number of its own.
            if (control.pid or control.container)
            and self._known.get(run_id) != (control.pid, control.container)
        }
        self._known = {k: v for k, v in self._known.items() if k in controls} | new
        if new:
            in_transaction(lambda: _record_places(new))

    def _tell(self, controls: dict[int, RunControl]) -> None:
        """Messages for those who hear them, when they have heard all that came before."""
        tellings = {run_id: control.telling for run_id, control in controls.items()}
        for run_id, telling in tellings.items():
            if said := telling.said:
                messages.note_said(run_id, said, self.clock())
                telling.noted(said)
        # One that is settled stays so: nobody else adds to it.
        ready = [run_id for run_id, one in tellings.items() if one.heard and one.is_settled]
        for run in Run.objects.filter(pk__in=ready, state=Run.State.RUNNING) if ready else ():
            add = tellings[run.pk].add
            told = [(one.pk, messages.as_line(one.text)) for one in messages.take(run)]
            messages.give_back(run.pk, [number for number, line in told if not add(number, line)])


def _record_places(places: dict[int, Where]) -> None:
    for run_id, (pid, container) in places.items():
        running = Run.objects.filter(pk=run_id, slot__isnull=False)
        running.update(pid=pid, container=container)


_held: Lease | None = None


def take_lease(name: str, concurrency: int) -> Lease:
    """Once in a worker process, before its first message."""
    global _held
    _held = Lease(name, concurrency)
    return _held


def current_host() -> Host:
    assert _held is not None, "runs are executed by workers, which take a lease when they start"
    return _held.host
