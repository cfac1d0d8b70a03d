"""Schedules of the peer: django-celery-beat's own rows."""

import json
from datetime import UTC, datetime, timedelta

from django_celery_beat.models import IntervalSchedule, PeriodicTask, PeriodicTasks

DAY = timedelta(days=1)


def write(count: int, first_due_at: float, apart_seconds: float = 0.0, task: str = "noop") -> None:
    """Each row is due once, at its instant, because it ran last exactly a day before that."""
    daily, _ = IntervalSchedule.objects.get_or_create(every=1, period=IntervalSchedule.DAYS)
    dues = [first_due_at + apart_seconds * number for number in range(count)]
    rows = [
        PeriodicTask(
            name=f"periodic{number}",
            task=f"peer.{task}",
            args=json.dumps([due_at]),
            interval=daily,
            last_run_at=datetime.fromtimestamp(due_at, UTC) - DAY,
        )
        for number, due_at in enumerate(dues)
    ]
    PeriodicTask.objects.bulk_create(rows, batch_size=1000)
    PeriodicTasks.update_changed()
