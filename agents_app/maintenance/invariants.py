"""What must never be true of the rows, whatever died when: queries that all return nothing.

Each function's first line says what its rows would mean; they only read, and cost a few scans.
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

Rows = QuerySet[Any, Any]
# A transaction stamps its rows before it commits them, and beat or a sweep may be a little late.
SOON = timedelta(minutes=1)
LATELY = timedelta(days=1)
MOST_EXAMPLES = 5
UNFINISHED = Q(state__in=[Run.State.PENDING, Run.State.RUNNING])


@dataclass(frozen=True, slots=True)
class Violation:
    """Rows that should not exist; `examples` are the ids of some of them."""

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
    examples = tuple(rows.order_by("pk").values_list("pk", flat=True)[:MOST_EXAMPLES])
    return Violation(query.__name__, (query.__doc__ or "").strip(), count, examples)


# --- slots ----------------------------------------------------------------------------------


def two_runs_in_one_slot(_: datetime) -> Rows:
    """Runs that share a slot of their agent: it runs more often at once than its scale."""
    return _doubles(Run.objects.filter(slot__isnull=False), "agent", "slot")


def two_runs_in_one_project_slot(_: datetime) -> Rows:
    """Runs that share a place under the project's cap."""
    return _doubles(Run.objects.filter(project_slot__isnull=False), "tenant", "project_slot")


def run_admitted_above_the_scale(_: datetime) -> Rows:
    """Runs in a slot that did not exist when they were admitted."""
    above = Run.objects.filter(slot__gte=F("agent__scale"), slot__lt=LENT)
    # One that borrowed its slot has one that was there before it.
    above = above.filter(borrowed_from__isnull=True)
    # After a file changed or a person lowered the scale, what ran before may finish.
    later = RunEvent.objects.filter(
        agent=OuterRef("agent"), name="agent.scaled", at__gt=OuterRef("created_at") - SOON
    )
    return above.filter(created_at__gt=F("agent__updated_at") + SOON).exclude(Exists(later))


def finished_run_holding_a_slot(_: datetime) -> Rows:
    """Ended runs that keep a slot, so that nobody else gets it."""
    held = Q(slot__isnull=False) | Q(project_slot__isnull=False)
    return Run.objects.filter(~UNFINISHED & held)


def unfinished_run_without_a_slot(_: datetime) -> Rows:
    """Unfinished runs that count for nobody's scale."""
    return Run.objects.filter(UNFINISHED, slot__isnull=True)


# --- runs and their work --------------------------------------------------------------------


def two_live_runs_of_one_work_item(_: datetime) -> Rows:
    """Work that is done twice at once."""
    return _doubles(Run.objects.filter(UNFINISHED), "work_item")


def one_attempt_twice(_: datetime) -> Rows:
    """Runs of one work item with the same attempt and rerun number."""
    return _doubles(Run.objects.all(), "work_item", "attempt", "rerun")


def admitted_work_without_an_unfinished_run(_: datetime) -> Rows:
    """Work that was admitted and that nothing runs: it would stay so for ever."""
    unfinished = Run.objects.filter(UNFINISHED, work_item=OuterRef("pk"))
    return WorkItem.objects.filter(state=WorkItem.State.ADMITTED).exclude(Exists(unfinished))


def unfinished_run_of_settled_work(_: datetime) -> Rows:
    """Unfinished runs whose work waits or is settled."""
    return Run.objects.filter(UNFINISHED).exclude(work_item__state=WorkItem.State.ADMITTED)


def work_that_waits_beside_a_free_slot(now: datetime) -> Rows:
    """Work that has waited for more than a minute although its agent has a free slot."""
    taken = Run.objects.filter(agent=OuterRef("agent"), slot__lt=LENT).order_by()
    count = Subquery(taken.values("agent").annotate(count=Count("pk")).values("count"))
    waiting = WorkItem.objects.filter(
        state=WorkItem.State.QUEUED,
        available_at__lt=now - SOON,
        # Under a project's cap others may be first.
        tenant__scale__isnull=True,
    ).exclude(agent__in=read_blocked_agents())
    return waiting.annotate(taken=Coalesce(count, 0)).filter(taken__lt=F("agent__scale"))


def running_run_without_a_worker(now: datetime) -> Rows:
    """Running runs whose worker ended more than a minute ago, or that never had one."""
    gone = Q(worker__isnull=True) | Q(worker__ended_at__lt=now - SOON)
    return Run.objects.filter(gone, state=Run.State.RUNNING)


def run_whose_times_contradict_its_state(_: datetime) -> Rows:
    """Ended runs without an end, or unfinished ones with one, or running ones without a start."""
    return Run.objects.filter(
        (UNFINISHED & Q(finished_at__isnull=False))
        | (~UNFINISHED & Q(finished_at__isnull=True))
        | Q(state=Run.State.RUNNING, started_at__isnull=True)
    )


def ended_run_without_its_event(now: datetime) -> Rows:
    """Runs of the last day that ended without a word in the journal."""
    name = Concat(Value("run."), OuterRef("state"), output_field=CharField())
    told = RunEvent.objects.filter(run=OuterRef("pk"), name=name)
    return Run.objects.filter(~UNFINISHED, finished_at__gt=now - LATELY).exclude(Exists(told))


# --- loans ----------------------------------------------------------------------------------


def lent_slot_that_nobody_has(_: datetime) -> Rows:
    """Runs whose slot is lent to no unfinished run, or to several."""
    return _badly_lent("slot", "borrowed_from")


def lent_project_slot_that_nobody_has(_: datetime) -> Rows:
    """Runs whose place under the project's cap is lent to no unfinished run, or to several."""
    return _badly_lent("project_slot", "project_borrowed_from")


def place_borrowed_from_nobody(_: datetime) -> Rows:
    """Unfinished runs that would give their place back to one that has ended, or never lent it."""
    slot_lenders = Run.objects.filter(pk=OuterRef("borrowed_from"), slot__gte=LENT)
    place_lenders = Run.objects.filter(pk=OuterRef("project_borrowed_from"), project_slot__gte=LENT)
    return Run.objects.filter(UNFINISHED).filter(
        Q(borrowed_from__isnull=False) & ~Exists(slot_lenders)
        | Q(project_borrowed_from__isnull=False) & ~Exists(place_lenders)
    )


def _badly_lent(place: str, debt: str) -> Rows:
    borrowers = Run.objects.filter(UNFINISHED, **{debt: OuterRef("pk")}).order_by()
    count = Subquery(borrowers.values(debt).annotate(count=Count("pk")).values("count"))
    lent = Run.objects.filter(**{f"{place}__gte": LENT})
    return lent.annotate(borrowers=Coalesce(count, 0)).exclude(borrowers=1)


# --- calls and locks ------------------------------------------------------------------------


def open_call_of_an_ended_caller(now: datetime) -> Rows:
    """Calls that nobody asks for any more, and that were not ended with their caller."""
    unsettled = Q(work_item__state__in=[WorkItem.State.QUEUED, WorkItem.State.ADMITTED])
    ended = Q(caller_run__finished_at__lt=now - SOON)
    return AgentCall.objects.filter(unsettled & ended, ended_at__isnull=True)


def lock_of_an_ended_run(now: datetime) -> Rows:
    """Locks that are in force although the run that holds them has ended."""
    return ResourceLock.objects.filter(run__finished_at__lt=now - SOON, expires_at__gt=now)


# --- schedules and firings ------------------------------------------------------------------


def undecided_firing(now: datetime) -> Rows:
    """Firings without an outcome more than a minute after they were to be decided."""
    return Firing.objects.filter(outcome="", decide_at__lt=now - SOON)


def firing_without_its_work(now: datetime) -> Rows:
    """Firings of the last day that say started or queued, and nothing was."""
    outcomes = [Firing.Outcome.STARTED, Firing.Outcome.QUEUED]
    return Firing.objects.filter(
        outcome__in=outcomes, recorded_at__gt=now - LATELY, work_item__isnull=True
    )


def work_of_a_firing_that_denies_it(_: datetime) -> Rows:
    """Work whose firing says that it was skipped or failed, or nothing at all."""
    outcomes = [Firing.Outcome.STARTED, Firing.Outcome.QUEUED]
    return WorkItem.objects.filter(firing__isnull=False).exclude(firing__outcome__in=outcomes)


def active_schedule_that_is_not_armed(_: datetime) -> Rows:
    """Active schedules without a next fire: they would never fire again."""
    idle = Schedule.objects.filter(state=Schedule.State.ACTIVE, next_fire_at__isnull=True)
    # A one-shot that has fired is active until its work has ended; cleared work may be restored.
    unfinished = [WorkItem.State.QUEUED, WorkItem.State.ADMITTED, WorkItem.State.CLEARED]
    work = WorkItem.objects.filter(schedule=OuterRef("pk"), state__in=unfinished)
    undecided = Firing.objects.filter(schedule=OuterRef("pk"), outcome="")
    return idle.exclude(Exists(work), one_shot=True).exclude(Exists(undecided), one_shot=True)


def due_schedule_that_no_beat_claims(now: datetime) -> Rows:
    """Schedules more than a minute overdue although beat is alive."""
    alive = Scheduler.objects.filter(last_check_at__gt=now - SOON)
    overdue = Schedule.objects.filter(state=Schedule.State.ACTIVE, next_fire_at__lt=now - SOON)
    return overdue.filter(Exists(alive))


# --- tenants --------------------------------------------------------------------------------


def run_of_another_tenant(_: datetime) -> Rows:
    """Runs whose tenant is not that of their agent or of their work."""
    same = Q(tenant=F("agent__tenant")) & Q(tenant=F("work_item__tenant"))
    return Run.objects.exclude(same)


def _doubles(rows: Rows, *fields: str) -> Rows:
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
    work_that_waits_beside_a_free_slot,
    running_run_without_a_worker,
    lent_slot_that_nobody_has,
    lent_project_slot_that_nobody_has,
    place_borrowed_from_nobody,
    open_call_of_an_ended_caller,
    lock_of_an_ended_run,
    run_whose_times_contradict_its_state,
    ended_run_without_its_event,
    undecided_firing,
    firing_without_its_work,
    work_of_a_firing_that_denies_it,
    active_schedule_that_is_not_armed,
    due_schedule_that_no_beat_claims,
    run_of_another_tenant,
)
