"""Checks for the processes that every run requires: a worker and beat."""

from datetime import datetime, timedelta

from agents_app.models import Scheduler, Worker

SILENT_BEAT_SECONDS = 30


def missing_processes(now: datetime) -> list[str]:
    """The kinds of processes that are missing: `worker` and `beat`."""
    missing = []
    if not Worker.objects.filter(ended_at__isnull=True, lease_until__gt=now).exists():
        missing.append("worker")
    recent = now - timedelta(seconds=SILENT_BEAT_SECONDS)
    if not Scheduler.objects.filter(pk=1, last_check_at__gt=recent).exists():
        missing.append("beat")
    return missing
