"""Deletion of schedules, agents and tenants with all their rows, in small transactions, and with
the state directories of the agents.

Refused while a run is unfinished, because its worker still uses the ids of the rows. The events of
the audit remain, except those of a deleted tenant.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import Case, CharField, QuerySet, Value, When
from django.db.models.functions import Cast, Concat, Left

from agents_app.conf import CONF, PROGRAM
from agents_app.database import ENGINE, in_transaction
from agents_app.errors import Refused
from agents_app.events import journal
from agents_app.installation import (
    remove_run_directory,
    remove_state_directory,
    run_directories,
)
from agents_app.models import Agent, Firing, Run, RunEvent, Schedule, Tenant, WorkItem
from agents_app.runs import dispatch
from agents_app.schedules import edit

ROWS_IN_ONE_COMMIT = 200
LONGEST_DETAIL = 500


# --- a schedule -----------------------------------------------------------------------------


def close_schedule(schedule: Schedule, by: str, now: datetime) -> "QuerySet[Run]":
    """Cancel the schedule and request a stop of its runs; returns the unfinished runs."""
    unfinished = Run.objects.filter(schedule=schedule, slot__isnull=False)

    def change() -> None:
        state = Schedule.objects.values_list("state", flat=True).filter(pk=schedule.pk).first()
        if state not in {None, Schedule.State.CANCELED}:
            edit.cancel(schedule, by, now)
        dispatch.request_stop(unfinished, now, f"its schedule was deleted by {by}", by=by)

    in_transaction(change)
    return unfinished


def remove_schedule(schedule: Schedule, by: str, now: datetime) -> None:
    """Delete the schedule with its firings, work items and runs, after `close_schedule`."""
    _refuse_unfinished(Run.objects.filter(schedule=schedule, slot__isnull=False))
    detail = f"{schedule.name}: {by}"

    def delete_work(items: "QuerySet[WorkItem]") -> None:
        _detach_audited(RunEvent.objects.filter(run__work_item__in=items), schedule.name)
        items.delete()

    ended = WorkItem.objects.filter(schedule=schedule).exclude(state=WorkItem.State.ADMITTED)
    _in_batches(ended, delete_work)
    _delete_in_batches(Firing.objects.filter(schedule=schedule))

    def change() -> None:
        schedule.delete()
        owner = (schedule.tenant_id, schedule.agent_id)
        entry = journal.JournalEntry("schedule.deleted", now, *owner, detail=detail, actor=by)
        journal.record(entry)

    in_transaction(change)


# --- an agent -------------------------------------------------------------------------------


def forget_agent(agent: Agent, by: str, now: datetime) -> None:
    """Delete an agent whose directory is gone, with its schedules, work items, runs and usage.

    Raises Refused if the directory returns meanwhile; what is left then remains."""
    agent_id = agent.pk

    def check() -> None:
        _lock_removed_agent(agent_id, agent.name)

    in_transaction(check)
    advice = f"wait for its end, or stop it with {PROGRAM} stop {agent.name}"
    _refuse_unfinished(agent.runs.filter(slot__isnull=False), "running", advice)
    _delete_rows_of_agent(agent, check)

    def change() -> None:
        check()
        detach_audited_of_agent(agent)
        Agent.objects.filter(pk=agent_id).delete()
        detail = f"{agent.name}: {by}"
        entry = journal.JournalEntry(
            "agent.forgotten", now, agent.tenant_id, detail=detail, actor=by
        )
        journal.record(entry)

    in_transaction(change)
    remove_state_directory(CONF.data, agent_id)


def _delete_rows_of_agent(agent: Agent, check: Callable[[], None]) -> None:
    """Each transaction begins with `check`, which may refuse it."""

    def delete_work(items: "QuerySet[WorkItem]") -> None:
        check()
        of_runs = RunEvent.objects.filter(run__work_item__in=items)
        _detach_audited(of_runs, agent.name, agent=None)
        items.delete()

    def delete_events(events: "QuerySet[RunEvent]") -> None:
        check()
        _detach_audited(events, agent.name, agent=None)
        events.filter(actor="").delete()

    _in_batches(WorkItem.objects.filter(agent=agent), delete_work)
    for schedule in agent.schedules.all():
        _delete_in_batches(Firing.objects.filter(schedule=schedule), check)
    _in_batches(RunEvent.objects.filter(agent=agent), delete_events)


def detach_audited_of_agent(agent: Agent) -> None:
    """Let the events of the audit remain when the agent is deleted in the same transaction."""
    _detach_audited(RunEvent.objects.filter(agent=agent), agent.name, agent=None)


def _lock_removed_agent(agent_id: int, name: str) -> None:
    """Lock the agent until the transaction ends; raises Refused if its directory exists."""
    ENGINE.lock_row("drover_agent", agent_id)
    row = Agent.objects.filter(pk=agent_id).values_list("directory", "removed_at").first()
    if row is None:
        raise Refused(f"{name} was deleted meanwhile")
    directory, removed_at = row
    if removed_at is None:
        raise Refused(
            f"{name} is defined in {directory or 'the project'}: "
            "only an agent whose directory was removed can be forgotten"
        )


# --- a tenant -------------------------------------------------------------------------------


def remove_tenant(tenant: Tenant, by: str, now: datetime, journal_of: Tenant) -> None:
    """Delete the tenant with all its rows, state directories and directories of runs, but not its
    project directory; the event is recorded in the journal of `journal_of`."""
    _refuse_unfinished(Run.objects.filter(tenant=tenant, slot__isnull=False))
    # Agent by agent, because the tables are indexed by agent.
    agents = list(Agent.objects.filter(tenant=tenant))
    left = _run_directories_of(tenant)
    for agent in agents:
        _delete_in_batches(WorkItem.objects.filter(agent=agent))
    for schedule in tenant.schedules.all():
        _delete_in_batches(Firing.objects.filter(schedule=schedule))
    _delete_in_batches(RunEvent.objects.filter(tenant=tenant))

    def change() -> None:
        tenant_name = tenant.name
        Tenant.objects.get(pk=tenant.pk).delete()
        journal.record(
            journal.JournalEntry(
                "tenant.deleted", now, journal_of.pk, detail=f"{tenant_name}: {by}", actor=by
            )
        )

    in_transaction(change)
    for agent in agents:
        remove_state_directory(CONF.data, agent.pk)
    for run_id in left:
        remove_run_directory(CONF.data, run_id)


def _run_directories_of(tenant: Tenant) -> list[int]:
    """The runs of the tenant that have a directory: those whose worker died, or could not remove
    it."""
    directory = run_directories(CONF.data)
    names = [path.name for path in directory.iterdir()] if directory.is_dir() else []
    numbers = [int(name) for name in names if name.isdecimal()]
    found: list[int] = []
    for start in range(0, len(numbers), ROWS_IN_ONE_COMMIT):
        some = Run.objects.filter(pk__in=numbers[start : start + ROWS_IN_ONE_COMMIT])
        found += some.filter(tenant=tenant).values_list("pk", flat=True)
    return found


# --- shared by all removals -----------------------------------------------------------------


def _refuse_unfinished(
    runs: "QuerySet[Run]", state: str = "ending", advice: str = "ask again in a moment"
) -> None:
    if count := runs.count():
        what = "a run is" if count == 1 else f"{count} runs are"
        raise Refused(f"{what} still {state}: {advice}")


def _detach_audited(events: "QuerySet[RunEvent]", name: str, **columns: None) -> None:
    """Set the run and `columns` of the audited events to NULL; in a transaction.

    Their detail then begins with the number of the run and `name`."""
    of_run = Concat(Value("run "), Cast("run_id", CharField()), Value(f" of {name}: "), "detail")
    without_run = Concat(Value(f"{name}: "), "detail")
    detail = Case(When(run__isnull=True, then=without_run), default=of_run)
    events.exclude(actor="").update(detail=Left(detail, LONGEST_DETAIL), run=None, **columns)


def _delete_in_batches(rows: "QuerySet[Any]", check: Callable[[], None] = lambda: None) -> None:
    def delete(some: "QuerySet[Any]") -> None:
        check()
        some.delete()

    _in_batches(rows, delete)


def _in_batches(rows: "QuerySet[Any]", change: Callable[["QuerySet[Any]"], None]) -> None:
    """Each batch is changed in one transaction."""
    # Read once: some of these queries scan the whole table.
    keys = list(rows.values_list("pk", flat=True))
    for start in range(0, len(keys), ROWS_IN_ONE_COMMIT):
        some = rows.model._default_manager.filter(pk__in=keys[start : start + ROWS_IN_ONE_COMMIT])
        in_transaction(partial(change, some))
