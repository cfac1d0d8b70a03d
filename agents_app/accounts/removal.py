"""What is taken away for good, with all that hangs on it, in bites that nobody waits for.

Only what nothing runs of: a worker still knows the ids of what it is doing.
"""

from datetime import datetime

from django.db.models import Model, QuerySet

from agents_app.database import in_transaction
from agents_app.errors import Refused
from agents_app.events import journal
from agents_app.models import Agent, Firing, Run, RunEvent, Schedule, Tenant, WorkItem
from agents_app.runs import dispatch
from agents_app.schedules import edit

ROWS_IN_ONE_BITE = 200


# --- a schedule -----------------------------------------------------------------------------


def close_schedule(schedule: Schedule, by: str, now: datetime) -> "QuerySet[Run]":
    """Canceled, and its runs are told to end; those that have not yet are returned."""
    unfinished = Run.objects.filter(schedule=schedule, slot__isnull=False)

    def change() -> None:
        state = Schedule.objects.values_list("state", flat=True).filter(pk=schedule.pk).first()
        if state not in {None, Schedule.State.CANCELED}:
            edit.cancel(schedule, by, now)
        dispatch.request_stop(unfinished, now, f"its schedule was deleted by {by}")

    in_transaction(change)
    return unfinished


def remove_schedule(schedule: Schedule, by: str, now: datetime) -> None:
    """With its firings, its work and its runs; `close_schedule` comes first."""
    _refuse_unfinished(Run.objects.filter(schedule=schedule, slot__isnull=False))
    detail = f"{schedule.name}: {by}"
    _bite(WorkItem.objects.filter(schedule=schedule).exclude(state=WorkItem.State.ADMITTED))
    _bite(Firing.objects.filter(schedule=schedule))

    def change() -> None:
        schedule.delete()
        entry = journal.JournalEntry(
            "schedule.deleted", now, schedule.tenant_id, schedule.agent_id, detail=detail
        )
        journal.record(entry)

    in_transaction(change)


# --- a tenant -------------------------------------------------------------------------------


def remove_tenant(tenant: Tenant, by: str, now: datetime, told: Tenant) -> None:
    """All it owns, in every table; `told` is the tenant whose journal keeps the fact."""
    _refuse_unfinished(Run.objects.filter(tenant=tenant, slot__isnull=False))
    # Agent by agent, because that is how the tables are indexed.
    for agent in Agent.objects.filter(tenant=tenant):
        _bite(WorkItem.objects.filter(agent=agent))
    for schedule in tenant.schedules.all():
        _bite(Firing.objects.filter(schedule=schedule))
    _bite(RunEvent.objects.filter(tenant=tenant))

    def change() -> None:
        tenant_name = tenant.name
        Tenant.objects.get(pk=tenant.pk).delete()
        journal.record(
            journal.JournalEntry("tenant.deleted", now, told.pk, detail=f"{tenant_name}: {by}")
        )

    in_transaction(change)


# --- the parts ------------------------------------------------------------------------------


def _refuse_unfinished(runs: "QuerySet[Run]") -> None:
    if count := runs.count():
        what = "a run is" if count == 1 else f"{count} runs are"
        raise Refused(f"{what} still ending: ask again in a moment")


def _bite(rows: "QuerySet[Model]") -> None:
    # Looked for once: some of these are found by reading the whole table.
    keys = list(rows.values_list("pk", flat=True))
    for start in range(0, len(keys), ROWS_IN_ONE_BITE):
        some = rows.model._default_manager.filter(pk__in=keys[start : start + ROWS_IN_ONE_BITE])
        in_transaction(some.delete)
