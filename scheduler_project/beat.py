"""Celery beat that also claims due schedules; agents' schedules are rows, not PeriodicTasks."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from django.db import DatabaseError, connection
from django_celery_beat.models import PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler

from agents_app import work_sources
from agents_app.database import SCHEMA_CHECK_SECONDS, in_transaction, schema_problem
from agents_app.events import relay
from agents_app.maintenance import DUTIES, POLL_WORK_SOURCES, RULES, BeatStatus, DutyRunner
from agents_app.project import ProjectWatcher
from agents_app.runs import control, shutdown
from agents_app.schedules import due
from agents_app.worker import booted_at

log = structlog.get_logger("drover.beat")
LONGEST_SLEEP_SECONDS = 1.0
SHORTEST_SLEEP_SECONDS = 0.005
RETRY_SECONDS = 1.0
# How often beat looks for a drain that a command, the API or another host has begun.
FOLLOW_DRAIN_SECONDS = 1.0
# Smaller corrections of the clock are normal.
SET_BACK = timedelta(seconds=5)


def utc_now() -> datetime:
    return datetime.now(UTC)


class DroverScheduler(DatabaseScheduler):  # type: ignore[misc]
    """Claims due schedules, then lets the parent class process the system duties."""

    # The parent would connect to Redis for each duty, which may be unreachable; duties run here.
    producer = None
    clock: Callable[[], datetime] = staticmethod(utc_now)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.status = BeatStatus()
        self.duties = DutyRunner()
        self.duties_at = 0.0
        self.follow_drain_at = 0.0
        self.check_schema_at = 0.0
        self.schema_problem = ""
        self.latest: datetime | None = None
        super().__init__(*args, **kwargs)

    def setup_schedule(self) -> None:
        """Called by Celery when beat starts."""
        super().setup_schedule()
        self._reset_future_times(self.clock())
        control.start_scheduler_if_stopped(self.clock())
        due.arm_boot_schedules(booted_at(), self.clock())
        relay.connect_early()
        self.duties.submit("agents_app.tasks.reconcile")
        threading.Thread(target=_watch, name="watch", daemon=True).start()

    def tick(self, *_: Any, **__: Any) -> float:
        try:
            return self._tick()
        except DatabaseError as error:
            log.warning("beat.database_unreachable", error=str(error))
            connection.close()
            return RETRY_SECONDS

    def _schema_differs(self) -> bool:
        """A beat of another version than the schema fires nothing and performs no duty."""
        if time.monotonic() >= self.check_schema_at:
            self.check_schema_at = time.monotonic() + SCHEMA_CHECK_SECONDS
            problem = schema_problem()
            if problem and problem != self.schema_problem:
                log.error("schema.differs", problem=problem)
            self.schema_problem = problem
        return bool(self.schema_problem)

    def _tick(self) -> float:
        if self._schema_differs():
            return RETRY_SECONDS
        now = self.clock()
        if self.latest is not None and now < self.latest - SET_BACK:
            self._reset_future_times(now)
        self.latest = now
        claimed = self._fire(now) if _is_due(due.next_due_at(), now) else 0
        self.status.record_check(now, claimed)
        if time.monotonic() >= self.follow_drain_at:
            self.follow_drain_at = time.monotonic() + FOLLOW_DRAIN_SECONDS
            shutdown.follow_drain(now)
        if time.monotonic() >= self.duties_at:
            self.duties_at = time.monotonic() + super().tick()
        return self._sleep_seconds()

    def _reset_future_times(self, now: datetime) -> None:
        """After the clock was set back, duties must not wait until the old time has passed."""
        for entry in self.schedule.values():
            if entry.last_run_at > now + SET_BACK:
                entry.last_run_at = entry.model.last_run_at = now
        self._heap = None

    def _fire(self, now: datetime) -> int:
        claimed = due.fire_due_schedules(now, self.clock)
        if work_sources.has_polling_firings():
            self.duties.submit(POLL_WORK_SOURCES)
        return claimed

    def _sleep_seconds(self) -> float:
        until = [LONGEST_SLEEP_SECONDS, self.duties_at - time.monotonic()]
        if next_due_at := due.next_due_at():
            if next_due_at - self.clock() < due.AHEAD:
                due.compute_next_fires_ahead(self.clock(), self.clock)
            seconds = (next_due_at - self.clock()).total_seconds()
            # A due schedule that is still unclaimed is being claimed by another beat.
            until.append(max(seconds, SHORTEST_SLEEP_SECONDS))
        return max(0.0, min(until))

    def apply_async(self, entry: Any, *args: Any, **kwargs: Any) -> Any:
        if entry.task not in DUTIES:
            return super().apply_async(entry, *args, **kwargs)
        if claim_duty(entry.name, entry.schedule.run_every.total_seconds(), self.clock()):
            self.duties.submit(entry.task)
        return None

    def close(self) -> None:
        super().close()
        RULES.stop()


def _is_due(moment: datetime | None, now: datetime) -> bool:
    return moment is not None and moment <= now


def _watch() -> None:
    ProjectWatcher(utc_now).run(threading.Event())


def claim_duty(name: str, every_seconds: float, now: datetime) -> bool:
    """True for one of several beats: the conditional update of the row decides."""
    # Less than the period, because two beats do not tick at the same time.
    stale = now - timedelta(seconds=every_seconds * 0.7)
    # A later time was written before the clock was set back: the duty must not wait for it.
    future = now + timedelta(seconds=every_seconds)
    idle = PeriodicTask.objects.filter(name=name).exclude(
        last_run_at__gt=stale, last_run_at__lt=future
    )
    return bool(in_transaction(lambda: idle.update(last_run_at=now)))
