"""Fires a schedule at once."""

from agents_app.models import Run, Schedule
from agents_app.schedules import due, firings
from gateway_app.api.fields import utc_now


def fire_now(schedule: Schedule) -> Run:
    """Makes the schedule due now, fires it and returns its new run."""
    moment = utc_now()
    Schedule.objects.filter(pk=schedule.pk).update(next_fire_at=moment)
    due.claim_due_schedules(moment)
    firings.decide_firings(moment)
    return Run.objects.filter(schedule=schedule).latest("pk")
