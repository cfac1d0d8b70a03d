"""Schedules count their runs and keep the error of the last work that failed."""

from typing import Any

from django.db import migrations, models
from django.db.models import Count, F

ROWS_IN_ONE_STATEMENT = 500


def count_runs(apps: Any, _editor: Any) -> None:
    """Retention has deleted old runs: the counters of firings and skips give the lowest number."""
    schedules = apps.get_model("agents_app", "Schedule").objects
    runs = apps.get_model("agents_app", "Run").objects.filter(schedule__isnull=False)
    stored = dict(runs.order_by().values_list("schedule_id").annotate(Count("pk")))
    changed = []
    for schedule in schedules.filter(fire_count__gt=0).only("pk", "fire_count", "skipped_count"):
        counted = schedule.fire_count - schedule.skipped_count
        schedule.run_count = max(counted, stored.get(schedule.pk, 0), 0)
        changed.append(schedule)
    schedules.bulk_update(changed, ["run_count"], batch_size=ROWS_IN_ONE_STATEMENT)
    failed = schedules.filter(state="failed").exclude(pause_note="")
    failed.update(last_error=F("pause_note"))


class Migration(migrations.Migration):

    dependencies = [
        ("agents_app", "0016_scheduler_states"),
    ]

    operations = [
        migrations.AddField(
            model_name="schedule",
            name="run_count",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="schedule",
            name="last_error",
            field=models.CharField(blank=True, db_default="", max_length=500),
        ),
        migrations.RunPython(count_runs, migrations.RunPython.noop),
    ]
