"""The invariants of `doctor --invariants`: queries that must return no rows, even after crashes.

The docstring of a query says what its rows mean. Queries only read, and scan whole tables.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import CharField, Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Concat

from agents_app.models import (
    LENT,
    AgentCall,
    Firing,
    ResourceLock,
    Run,
    RunEvent,
    Schedule,
    Scheduler,
    WorkItem,
)
from agents_app.runs import read_blocked_agents
from agents_app.triggers import BOOT_EXPRESSION

Rows = QuerySet[Any, Any]
# Rows have the time of their transaction's start, and beat or the sweep may be a little late.
TOLERANCE = timedelta(minutes=1)
RECENT = timedelta(days=1)
MAX_EXAMPLES = 5
UNFINISHED = Q(state__in=[Run.State.PENDING, Run.State.RUNNING])


@dataclass(frozen=True, slots=True)
class Violation:
    """Rows that must not exist; `examples` are some of their ids."""

    name: str
    meaning: str
    count: int
    examples: tuple[int, ...]


def violations(now: datetime) -> list[Violation]:
    return [found for query in INVARIANTS if (found := _violation(query, now))]


def _violation(query: Callable[[datetime], Rows], now: datetime) -> Violation | None:
    rows = query(now)
    count = rows.count()
    if not count:
        return None
    examples = tuple(rows.order_by("pk").values_list("pk", flat=True)[:MAX_EXAMPLES])
    return Violation(query.__name__, (query.__doc__ or "").strip(), count, examples)


# --- slots ----------------------------------------------------------------------------------


def two_runs_in_one_slot(_: datetime) -> Rows:
    """Runs that share a slot of their agent: more parallel runs than its scale allows."""
    return _sharing(Run.objects.filter(slot__isnull=False), "agent", "slot")


def two_runs_in_one_project_slot(_: datetime) -> Rows:
    """Runs that share a project slot: more parallel runs than the project's cap allows."""
    return _sharing(Run.objects.filter(project_slot__isnull=False), "tenant", "project_slot")


def run_admitted_above_the_scale(_: datetime) -> Rows:
    """Runs in a slot that did not exist when they were admitted."""
    above = Run.objects.filter(slot__gte=F("agent__scale"), slot__lt=LENT)
    # A borrowed slot existed before the run that borrowed it.
    above = above.filter(borrowed_from__isnull=True)
    # After the scale was lowered, by a file or a person, earlier runs may finish.
    later = RunEvent.objects.filter(
        agent=OuterRef("agent"), name="agent.scaled", at__gt=OuterRef("created_at") - TOLERANCE
    )
    return above.filter(created_at__gt=F("agent__updated_at") + TOLERANCE).exclude(Exists(later))


def finished_run_holding_a_slot(_: datetime) -> Rows:
    """Ended runs that keep a slot, which no other run can use."""
    held = Q(slot__isnull=False) | Q(project_slot__isnull=False)
    return Run.objects.filter(~UNFINISHED & held)


def unfinished_run_without_a_slot(_: datetime) -> Rows:
    """Unfinished runs that do not count towards a scale."""
    return Run.objects.filter(UNFINISHED, slot__isnull=True)


# --- runs and their work --------------------------------------------------------------------


def two_live_runs_of_one_work_item(_: datetime) -> Rows:
    """Work items with several unfinished runs."""
    return _sharing(Run.objects.filter(UNFINISHED), "work_item")


def one_attempt_twice(_: datetime) -> Rows:
    """Runs of one work item with the same attempt and rerun number."""
    return _sharing(Run.objects.all(), "work_item", "attempt", "rerun")


def admitted_work_without_an_unfinished_run(_: datetime) -> Rows:
    """Admitted work items without an unfinished run: they would never be finished."""
    unfinished = Run.objects.filter(UNFINISHED, work_item=OuterRef("pk"))
    return WorkItem.objects.filter(state=WorkItem.State.ADMITTED).exclude(Exists(unfinished))


def unfinished_run_of_settled_work(_: datetime) -> Rows:
    """Unfinished runs whose work item is not admitted."""
    return Run.objects.filter(UNFINISHED).exclude(work_item__state=WorkItem.State.ADMITTED)


def work_queued_despite_a_free_slot(now: datetime) -> Rows:
    """Work items queued for more than a minute although their agent has a free slot."""
    taken = Run.objects.filter(agent=OuterRef("agent"), slot__lt=LENT).order_by()
    count = Subquery(taken.values("agent").annotate(count=Count("pk")).values("count"))
    waiting = WorkItem.objects.filter(
        state=WorkItem.State.QUEUED,
        available_at__lt=now - TOLERANCE,
        # Under a project's cap other agents may be first.
        tenant__scale__isnull=True,
    ).exclude(agent__in=read_blocked_agents())
    return waiting.annotate(taken=Coalesce(count, 0)).filter(taken__lt=F("agent__scale"))


def running_run_without_a_worker(now: datetime) -> Rows:
    """Running runs whose worker ended more than a minute ago, or that never had one."""
    gone = Q(worker__isnull=True) | Q(worker__ended_at__lt=now - TOLERANCE)
    return Run.objects.filter(gone, state=Run.State.RUNNING)


def run_whose_times_contradict_its_state(_: datetime) -> Rows:
    """Ended runs without an end time, unfinished runs with one, or running runs without a start."""
    return Run.objects.filter(
        (UNFINISHED & Q(finished_at__isnull=False))
        | (~UNFINISHED & Q(finished_at__isnull=True))
        | Q(state=Run.State.RUNNING, started_at__isnull=True)
    )


def ended_run_without_its_event(now: datetime) -> Rows:
    """Runs of the last day that ended without an entry in the journal."""
    name = Concat(Value("run."), OuterRef("state"), output_field=CharField())
    entries = RunEvent.objects.filter(run=OuterRef("pk"), name=name)
    return Run.objects.filter(~UNFINISHED, finished_at__gt=now - RECENT).exclude(Exists(entries))


# --- loans ----------------------------------------------------------------------------------


def lent_slot_without_a_borrower(_: datetime) -> Rows:
    """Runs whose slot is lent to no unfinished run, or to several."""
    return _not_lent_once("slot", "borrowed_from")


def lent_project_slot_without_a_borrower(_: datetime) -> Rows:
    """Runs whose project slot is lent to no unfinished run, or to several."""
    return _not_lent_once("project_slot", "project_borrowed_from")


def slot_borrowed_from_no_lender(_: datetime) -> Rows:
    """Unfinished runs with a slot borrowed from a run that has ended or never lent it."""
    slot_lenders = Run.objects.filter(pk=OuterRef("borrowed_from"), slot__gte=LENT)
    project_lenders = Run.objects.filter(
        pk=OuterRef("project_borrowed_from"), project_slot__gte=LENT
    )
    return Run.objects.filter(UNFINISHED).filter(
        Q(borrowed_from__isnull=False) & ~Exists(slot_lenders)
        | Q(project_borrowed_from__isnull=False) & ~Exists(project_lenders)
    )


def _not_lent_once(column: str, debt: str) -> Rows:
    borrowers = Run.objects.filter(UNFINISHED, **{debt: OuterRef("pk")}).order_by()
    count = Subquery(borrowers.values(debt).annotate(count=Count("pk")).values("count"))
    lent = Run.objects.filter(**{f"{column}__gte": LENT})
    return lent.annotate(borrowers=Coalesce(count, 0)).exclude(borrowers=1)


# --- calls and locks ------------------------------------------------------------------------


def open_call_of_an_ended_caller(now: datetime) -> Rows:
    """Calls that were not ended although their caller has ended."""
    unsettled = Q(work_item__state__in=[WorkItem.State.QUEUED, WorkItem.State.ADMITTED])
    ended = Q(caller_run__finished_at__lt=now - TOLERANCE)
    return AgentCall.objects.filter(unsettled & ended, ended_at__isnull=True)


def lock_of_an_ended_run(now: datetime) -> Rows:
    """Locks that are in force although the run that holds them has ended."""
    return ResourceLock.objects.filter(run__finished_at__lt=now - TOLERANCE, expires_at__gt=now)


# --- schedules and firings ------------------------------------------------------------------


def undecided_firing(now: datetime) -> Rows:
    """Firings without an outcome more than a minute after they were to be decided."""
    return Firing.objects.filter(outcome="", decide_at__lt=now - TOLERANCE)


def firing_without_its_work(now: datetime) -> Rows:
    """Firings of the last day with the outcome started or queued but without a work item."""
    outcomes = [Firing.Outcome.STARTED, Firing.Outcome.QUEUED]
    return Firing.objects.filter(
        outcome__in=outcomes, recorded_at__gt=now - RECENT, work_item__isnull=True
    )


def work_of_a_firing_without_work(_: datetime) -> Rows:
    """Work items whose firing was skipped, has failed or is undecided."""
    outcomes = [Firing.Outcome.STARTED, Firing.Outcome.QUEUED]
    return WorkItem.objects.filter(firing__isnull=False).exclude(firing__outcome__in=outcomes)


def active_schedule_without_a_next_fire_time(_: datetime) -> Rows:
    """Active schedules without a next fire time: they would never fire again."""
    idle = Schedule.objects.filter(state=Schedule.State.ACTIVE, next_fire_at__isnull=True)
    idle = idle.exclude(expression=BOOT_EXPRESSION)
    # A one-shot that has fired is active until its work has ended; cleared work may be restored.
    unfinished = [WorkItem.State.QUEUED, WorkItem.State.ADMITTED, WorkItem.State.CLEARED]
    work = WorkItem.objects.filter(schedule=OuterRef("pk"), state__in=unfinished)
    undecided = Firing.objects.filter(schedule=OuterRef("pk"), outcome__in=["", "polling"])
    return idle.exclude(Exists(work), one_shot=True).exclude(Exists(undecided), one_shot=True)


def due_schedule_that_no_beat_claims(now: datetime) -> Rows:
    """Schedules more than a minute overdue although beat is alive."""
    alive = Scheduler.objects.filter(last_check_at__gt=now - TOLERANCE)
    overdue = Schedule.objects.filter(state=Schedule.State.ACTIVE, next_fire_at__lt=now - TOLERANCE)
    return overdue.filter(Exists(alive))


# --- tenants --------------------------------------------------------------------------------


def run_of_another_tenant(_: datetime) -> Rows:
    """Runs whose tenant is not the tenant of their agent or work item."""
    same = Q(tenant=F("agent__tenant")) & Q(tenant=F("work_item__tenant"))
    return Run.objects.exclude(same)


def _sharing(rows: Rows, *fields: str) -> Rows:
    same = {field: OuterRef(field) for field in fields}
    return rows.filter(Exists(rows.filter(**same).exclude(pk=OuterRef("pk"))))


INVARIANTS: tuple[Callable[[datetime], Rows], ...] = (
    two_runs_in_one_slot,
    two_runs_in_one_project_slot,
    run_admitted_above_the_scale,
    finished_run_holding_a_slot,
    unfinished_run_without_a_slot,
    two_live_runs_of_one_work_item,
    one_attempt_twice,
    admitted_work_without_an_unfinished_run,
    unfinished_run_of_settled_work,
    work_queued_despite_a_free_slot,
    running_run_without_a_worker,
    lent_slot_without_a_borrower,
    lent_project_slot_without_a_borrower,
    slot_borrowed_from_no_lender,
    open_call_of_an_ended_caller,
    lock_of_an_ended_run,
    run_whose_times_contradict_its_state,
    ended_run_without_its_event,
    undecided_firing,
    firing_without_its_work,
    work_of_a_firing_without_work,
    active_schedule_without_a_next_fire_time,
    due_schedule_that_no_beat_claims,
    run_of_another_tenant,
)
