"""Creates schedules of the peer: rows of django-celery-beat."""

import json
import math
import time
from datetime import UTC, datetime, timedelta

from django_celery_beat.models import IntervalSchedule, PeriodicTask, PeriodicTasks

DAY = timedelta(days=1)


def write(count: int, task: str = "noop") -> None:
    """Due a day from now."""
    daily, _ = IntervalSchedule.objects.get_or_create(every=1, period=IntervalSchedule.DAYS)
    now = datetime.now(UTC)
    rows = [
        PeriodicTask(name=f"row{number}", task=f"peer.{task}", interval=daily, last_run_at=now)
        for number in range(count)
    ]
    PeriodicTask.objects.bulk_create(rows, batch_size=1000)
    PeriodicTasks.update_changed()


def arm(in_seconds: float, apart_seconds: float = 0.0) -> float:
    """Make every row due once, by setting its last run to a day before."""
    first = datetime.fromtimestamp(math.ceil(time.time() + in_seconds), UTC)
    if apart_seconds:
        for number, row in enumerate(PeriodicTask.objects.filter(name__startswith="row")):
            due_at = first + timedelta(seconds=apart_seconds * number)
            row.last_run_at, row.args = due_at - DAY, json.dumps([due_at.timestamp()])
            row.save()
    else:
        PeriodicTask.objects.update(last_run_at=first - DAY)
    PeriodicTasks.update_changed()
    return first.timestamp()
