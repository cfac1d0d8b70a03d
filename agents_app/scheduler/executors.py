"""Who executes the runs of a scheduler: a worker process, or the program's `on_trigger`.

Both receive hints in place of Redis, hold a lease, and end when they are drained.
"""

import asyncio
import inspect
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from django.db import connections

from agents_app.conf import CONF, NO_GATEWAY, ROOT
from agents_app.events import relay
from agents_app.installation import create_private_directory, open_private_file
from agents_app.models import Firing, Run, Schedule
from agents_app.output import Transcript
from agents_app.runners import RunControl, Runner
from agents_app.runs import Ending, Job
from agents_app.scheduler.hinted_runs import HintedRuns
from agents_app.scheduler.values import (
    SchedulerLogger,
    SchedulerTriggerCallback,
    TriggerInfo,
    TriggerMetadata,
)
from agents_app.stack import guard_argv, role_environment
from agents_app.worker import Lease

LEAST_SECONDS_BETWEEN_STARTS = 2.0
LONGEST_ERROR = 300


class Executor(Protocol):
    """A transport of hints whose receiver executes the runs."""

    def connect(self) -> None: ...

    def publish(self, run_id: int, queue: str) -> None: ...

    def waiting(self, queues: Iterable[str]) -> dict[str, int]: ...

    def keep_alive(self) -> bool:
        """Start it, and start it again if it has ended; True if it was started."""
        ...

    def drain(self) -> None:
        """Start no further runs."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait for the end of its runs; False if some are unfinished after the time."""
        ...


def new_executor(
    name: str, project: Path, logger: SchedulerLogger, callback: SchedulerTriggerCallback | None
) -> Executor:
    """`name` is that of its worker row; `callback` replaces the programs of the agents."""
    if callback is None:
        return WorkerProcess(name, project, logger)
    return CallbackExecutor(name, callback, logger)


def hint_pending_runs() -> None:
    """Send the hints of all pending runs to an executor that was started after them."""
    pending = Run.objects.filter(state=Run.State.PENDING).order_by("pk")
    for run_id, agent_id in pending.values_list("pk", "agent_id"):
        relay.hint(run_id, agent_id)


# --- programs -------------------------------------------------------------------------------


class WorkerProcess:
    """A child process that executes programs as a worker of Drover does, below a guard.

    It is a process of its own, because a worker that has lost its lease must be killed."""

    def __init__(self, name: str, project: Path, logger: SchedulerLogger) -> None:
        self.name = name
        self.project = project
        self.logger = logger
        self._process: subprocess.Popen[bytes] | None = None
        self._start_at = 0.0
        self._writing = threading.Lock()

    def connect(self) -> None:
        """The pipe is opened by `keep_alive`."""

    def publish(self, run_id: int, queue: str) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdin.closed:
            return  # the next start hints all pending runs
        with self._writing:
            try:
                process.stdin.write(f"{run_id} {queue}\n".encode())
                process.stdin.flush()
            except OSError:
                self.logger.debug(f"hint of run {run_id}: the worker process has ended")

    def waiting(self, queues: Iterable[str]) -> dict[str, int]:
        """Not known here: the sweep repeats hints, and the process ignores repeated ones."""
        return dict.fromkeys(queues, 0)

    def keep_alive(self) -> bool:
        if self._process is not None:
            status = self._process.poll()
            if status is None:
                return False
            self.logger.error(
                f"the worker process has ended with status {status}{self._last_words()}; "
                "another one is started"
            )
            self._process = None
        if time.monotonic() < self._start_at:
            return False
        self._start_at = time.monotonic() + LEAST_SECONDS_BETWEEN_STARTS
        self._process = self._start()
        return True

    def drain(self) -> None:
        """The end of its input makes the process end after its last run."""
        if self._process is not None and self._process.stdin is not None:
            with self._writing:
                try:
                    self._process.stdin.close()
                except OSError:
                    self.logger.debug("drain: the worker process has ended")

    def wait(self, seconds: float) -> bool:
        if self._process is None:
            return True
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _start(self) -> subprocess.Popen[bytes]:
        create_private_directory(self._error_file.parent)
        errors = open_private_file(self._error_file)
        try:
            os.ftruncate(errors, 0)
            module = (sys.executable, "-m", "agents_app.scheduler")
            return subprocess.Popen(
                [*guard_argv(CONF), *module, self.name, str(CONF.concurrency)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=ROOT,
                env=self._environment(),
                # Ctrl-C in a terminal is for the program, which then drains.
                start_new_session=True,
            )
        finally:
            os.close(errors)

    def _environment(self) -> dict[str, str]:
        own = {
            "DROVER_ROLE": "worker-embedded",
            "DROVER_DATA": str(CONF.data),
            "DROVER_PROJECT": str(self.project),
            "DATABASE_URL": CONF.database_url,
            # Not the default address: a run must not send its token to what listens there.
            "DROVER_GATEWAY_URL": CONF.gateway_address or NO_GATEWAY,
            "DJANGO_SETTINGS_MODULE": "scheduler_project.settings",
        }
        return role_environment(CONF, os.environ, "worker") | own

    @property
    def _error_file(self) -> Path:
        return CONF.data / "logs" / "worker-embedded.stderr"

    def _last_words(self) -> str:
        lines = self._error_file.read_text(errors="replace").strip().splitlines()
        return f": {lines[-1][:LONGEST_ERROR]}" if lines else ""


# --- on_trigger -----------------------------------------------------------------------------


class CallbackExecutor:
    """Threads of this process that call `on_trigger` in place of the agents' programs."""

    def __init__(
        self, name: str, callback: SchedulerTriggerCallback, logger: SchedulerLogger
    ) -> None:
        self.name = name
        self.callback = callback
        self.logger = logger
        self._lease: Lease | None = None
        self._runs: HintedRuns | None = None
        self._ending: threading.Thread | None = None

    def connect(self) -> None:
        """Nothing is to be connected."""

    def publish(self, run_id: int, queue: str) -> None:
        if self._runs is not None:
            self._runs.publish(run_id, queue)

    def waiting(self, queues: Iterable[str]) -> dict[str, int]:
        return self._runs.waiting(queues) if self._runs else dict.fromkeys(queues, 0)

    def keep_alive(self) -> bool:
        if self._lease is not None and not self._lease.host.draining.is_set():
            return False
        if self._lease is not None:
            self.logger.error("the lease of this process was lost; another one is taken")
        self._lease = Lease(self.name, CONF.concurrency, performer=self._perform)
        self._runs = HintedRuns(self._lease.host, CONF.concurrency)
        return True

    def drain(self) -> None:
        if self._runs is not None and self._ending is None:
            self._runs.drain()
            self._ending = threading.Thread(target=self._end, name="scheduler-end", daemon=True)
            self._ending.start()

    def wait(self, seconds: float) -> bool:
        if self._ending is None:
            return True
        self._ending.join(seconds)
        return not self._ending.is_alive()

    def _end(self) -> None:
        """Keep the lease until the last callback has returned."""
        assert self._runs is not None and self._lease is not None
        self._runs.wait()
        self._lease.end()
        connections.close_all()

    def _perform(
        self,
        job: Job,
        _control: RunControl,
        transcript: Transcript,
        _clock: Callable[[], datetime],
        _adopted: Runner | None = None,
    ) -> Ending:
        try:
            _call(self.callback, trigger_info(job))
        except Exception as error:
            problem = f"on_trigger: {type(error).__name__}: {error}".replace("\0", "")
            self.logger.error(f"run {job.run_id} of {job.agent}: {problem}")
            return Ending("failed", error=problem)
        finally:
            transcript.close()
        return Ending("succeeded")


def _call(callback: SchedulerTriggerCallback, info: TriggerInfo) -> None:
    result: Any = callback(info)
    if inspect.isawaitable(result):
        asyncio.run(_await(result))


async def _await(awaitable: Any) -> None:
    await awaitable


def trigger_info(job: Job) -> TriggerInfo:
    schedules = Schedule.objects.filter(pk=job.schedule_id or 0)
    due_at = Firing.objects.filter(pk=job.firing_id or 0).values_list("due_at", flat=True).first()
    return TriggerInfo(
        agent=job.agent,
        schedule=schedules.values_list("name", flat=True).first() or "",
        run_id=job.run_id,
        work_item_id=job.work_item_id,
        prompt=job.prompt,
        context=job.context,
        attempt=job.attempt,
        rerun=job.rerun,
        timeout_seconds=job.timeout_seconds,
        metadata=TriggerMetadata(
            trigger=job.trigger,
            requested_by=job.requested_by,
            trace_id=job.trace_id,
            firing_id=job.firing_id,
            due_at=due_at,
            parent_run_id=job.parent_run_id,
        ),
    )
