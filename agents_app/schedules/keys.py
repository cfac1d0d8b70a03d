"""A schedule that is asked for twice under one key is made once."""

from datetime import datetime

from django.db import IntegrityError

from agents_app.database import in_transaction
from agents_app.models import Agent, Schedule
from agents_app.schedules import edit
from agents_app.schedules.edit import Draft


def create_once(
    agent: Agent, draft: Draft, key: str | None, by: str, now: datetime
) -> tuple[Schedule, bool]:
    """The schedule, and whether it was made now; without a key, as often as it is asked for."""
    if key is None:
        return edit.create(agent, draft, by, now), True
    same = Schedule.objects.filter(tenant=agent.tenant_id, idempotency_key=key)

    def change() -> tuple[Schedule, bool]:
        if known := same.first():
            return known, False
        schedule = edit.create(agent, draft, by, now)
        Schedule.objects.filter(pk=schedule.pk).update(idempotency_key=key)
        return schedule, True

    try:
        return in_transaction(change)
    except IntegrityError:
        # Somebody with the same key was faster by less than a transaction.
        return same.get(), False
