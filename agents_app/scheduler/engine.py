"""The loop of a scheduler: what beat does, on a thread of the program."""

import threading
import time
from collections.abc import Mapping
from concurrent.futures import wait
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import DatabaseError, connections
from django.db.models import Count

from agents_app import work_sources
from agents_app.events import relay
from agents_app.maintenance import POLL_WORK_SOURCES, BeatStatus, DutyRunner
from agents_app.models import Run, Scheduler, Worker
from agents_app.project import sync_discovery
from agents_app.runs import control
from agents_app.scheduler.agents import Agents, read_agents
from agents_app.scheduler.executors import hint_pending_runs, new_executor
from agents_app.scheduler.values import SchedulerLogger, SchedulerTriggerCallback
from agents_app.schedules import due
from agents_app.worker import booted_at, utc_now

# Rules are those of a project directory with `manage.py up`.
NOT_PERFORMED = "agents_app.tasks.obey_rules"


class SchedulerEngine:
    """Fires due schedules and performs the duties of beat until it is stopped."""

    def __init__(
        self,
        agents: Agents,
        check_interval: float,
        logger: SchedulerLogger,
        on_trigger: SchedulerTriggerCallback | None,
    ) -> None:
        self.logger = logger
        self.check_interval = check_interval
        self.on_trigger = on_trigger
        self.check_count = self.trigger_count = 0
        self.started_at: datetime | None = None
        self.last_check_at: datetime | None = None
        # Names the worker of this scheduler in its row.
        self.name = f"embedded-{uuid4().hex[:12]}"
        # With errors in the agents nothing is started or changed.
        self._discovery, project = read_agents(agents, needs_command=on_trigger is None)
        self.executor = new_executor(self.name, project, logger, on_trigger)
        self._status = BeatStatus()
        self._duties = DutyRunner()
        self._duty_at: dict[str, float] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="scheduler", daemon=True)

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        control.start_scheduler_if_stopped(utc_now())
        # First, because agents with more slots admit queued work.
        relay.use_transport(self.executor)
        try:
            sync_discovery(self._discovery, utc_now())
            due.arm_boot_schedules(booted_at(), utc_now())
            self._keep_executor_alive()
        except BaseException:
            relay.use_transport(None)
            raise
        self.started_at = utc_now()
        self._thread.start()

    def set_agents(self, agents: Agents) -> None:
        discovery, _ = read_agents(agents, needs_command=self.on_trigger is None)
        sync_discovery(discovery, utc_now())

    def drain(self) -> None:
        """End the loop and start no further run."""
        self._stopping.set()
        self._thread.join()
        relay.drain()
        self.executor.drain()
        relay.use_transport(None)
        self._duties.pool.shutdown(wait=False)

    def wait(self, seconds: float) -> bool:
        """Wait for the runs, then for duties; False if runs are unfinished after the time."""
        give_up_at = time.monotonic() + seconds
        finished = self.executor.wait(seconds)
        if finished and not self._has_other_workers():
            control.record_stopped(utc_now(), was=[Scheduler.State.RUNNING])
        wait(self._duties.running.values(), max(0.0, give_up_at - time.monotonic()))
        return finished

    def _has_other_workers(self) -> bool:
        live = Worker.objects.filter(ended_at__isnull=True, lease_until__gt=utc_now())
        return live.exclude(name=self.name).exists()

    # --- counts -------------------------------------------------------------------------------

    def running_counts(self) -> dict[str, int]:
        """The number of running runs of each agent that has some."""
        running = Run.objects.filter(state=Run.State.RUNNING, worker__name=self.name)
        counts = running.order_by().values_list("agent__name").annotate(Count("pk"))
        return dict(counts)

    # --- loop ---------------------------------------------------------------------------------

    def _loop(self) -> None:
        while not self._stopping.is_set():
            try:
                self._check(utc_now())
            except DatabaseError as error:
                self.logger.error(f"the database does not answer: {error}")
                connections.close_all()
            except Exception as error:
                self.logger.error(
                    f"a check of the schedules failed: {type(error).__name__}: {error}"
                )
            self._stopping.wait(self.check_interval)
        connections.close_all()

    def _keep_executor_alive(self) -> None:
        if self.executor.keep_alive():
            hint_pending_runs()

    def _check(self, now: datetime) -> None:
        self._keep_executor_alive()
        next_due_at = due.next_due_at()
        claimed = 0
        if next_due_at is not None and next_due_at <= now:
            claimed = due.fire_due_schedules(now, utc_now)
        self.check_count += 1
        self.trigger_count += claimed
        self.last_check_at = now
        self._status.record_check(now, claimed)
        self._perform_duties()

    def _perform_duties(self) -> None:
        if work_sources.has_polling_firings():
            self._duties.submit(POLL_WORK_SOURCES)
        duties: Mapping[str, Any] = settings.CELERY_BEAT_SCHEDULE
        for duty in duties.values():
            task, every = duty["task"], duty["schedule"]
            if task != NOT_PERFORMED and time.monotonic() >= self._duty_at.get(task, 0.0):
                self._duty_at[task] = time.monotonic() + every
                self._duties.submit(task)
