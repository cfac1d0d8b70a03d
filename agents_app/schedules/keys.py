"""Creation of a schedule with an idempotency key."""

from datetime import datetime

from django.db import IntegrityError

from agents_app.database import in_transaction
from agents_app.models import Agent, Schedule
from agents_app.schedules import edit
from agents_app.schedules.edit import Draft


def create_once(
    agent: Agent, draft: Draft, key: str | None, by: str, now: datetime
) -> tuple[Schedule, bool]:
    """The schedule with the key, and whether this call created it; without a key always true."""
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
        # A concurrent request with the same key has committed first.
        return same.get(), False
