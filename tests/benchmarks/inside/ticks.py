"""Measures one tick of beat in this process, for Drover and for the peer."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from statistics import median

from django_celery_beat.models import PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler

from agents_app.database.transactions import in_transaction
from agents_app.models import Schedule
from agents_app.schedules import due


def drover(ticks: int, edits: int) -> dict[str, float]:
    schedule = Schedule.objects.order_by("id")[1000]

    def edit() -> None:
        schedule.prompt += "."
        in_transaction(schedule.save)
        _tick()

    return {"tick_ms": _median_ms(_tick, ticks), "edit_ms": _median_ms(edit, edits)}


def _tick() -> None:
    """Query the next due time twice, as beat does: to find due entries, and to sleep."""
    for _ in range(2):
        upcoming = due.next_due_at()
        assert upcoming is not None and upcoming > datetime.now(UTC)


def peer(ticks: int, edits: int) -> dict[str, float]:
    from tests.benchmarks.peer.app import app

    scheduler = DatabaseScheduler(app=app, lazy=True)
    task = PeriodicTask.objects.order_by("id")[1000]

    def edit() -> None:
        task.description += "."
        task.save()
        scheduler.tick()

    return {"tick_ms": _median_ms(scheduler.tick, ticks), "edit_ms": _median_ms(edit, edits)}


def _median_ms(act: Callable[[], object], times: int) -> float:
    act()  # connections, caches, statements
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        taken.append(time.perf_counter() - began)
    return median(taken) * 1000
