"""Decides recorded firings: each enqueues work or is skipped with a reason."""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from functools import partial

import structlog
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F, QuerySet

from agents_app.database import execute, in_transaction
from agents_app.models import Agent, Firing, Run, Schedule, Trigger, WorkItem
from agents_app.runs import (
    AGENT_MISSING,
    SCHEDULE_BLOCKS,
    TENANT_DISABLED,
    AgentGate,
    Request,
    enqueue_in_transaction,
    find_free_slots,
    lifecycle,
    lock_agent,
    request_stop,
    schedule_states,
)
from agents_app.schedules.firing_log import LoggedFiring, log_decided
from agents_app.schedules.plan import firing_trace_id

log = structlog.get_logger("drover.firings")
FIRINGS_IN_ONE_BATCH = 2000
Decision = tuple[str, str]
AT_CAPACITY: Decision = (Firing.Outcome.SKIPPED, Firing.Reason.AT_CAPACITY)


def decide_firings(now: datetime) -> int:
    """Commit the outcome of all firings whose time has come, the oldest first."""
    decided = 0
    while batch := _decide_batch(now):
        decided += batch
    return decided


def _decide_batch(now: datetime) -> int:
    """One transaction per agent, so that workers wait only for the agent of their run."""
    decided: list[LoggedFiring] = []
    failed = 0
    try:
        for agent_id, firing_ids in _undecided_by_agent(now).items():
            try:
                decided += in_transaction(partial(_decide_for_agent, agent_id, firing_ids, now))
            except (OperationalError, InterfaceError):
                raise  # the database is unavailable: beat repeats the call
            except Exception:
                log.exception("firing.undecidable", agent_id=agent_id)
                for firing_id in firing_ids:
                    failed += _decide_alone(agent_id, firing_id, now, decided)
    finally:
        log_decided(decided)
    return len(decided) + failed


def _undecided_by_agent(now: datetime) -> dict[int, list[int]]:
    due = Firing.objects.filter(outcome="", decide_at__lte=now).order_by("decide_at", "id")
    by_agent: dict[int, list[int]] = {}
    for firing_id, agent_id in due.values_list("pk", "schedule__agent")[:FIRINGS_IN_ONE_BATCH]:
        by_agent.setdefault(agent_id, []).append(firing_id)
    return by_agent


def _decide_alone(agent_id: int, firing_id: int, now: datetime, decided: list[LoggedFiring]) -> int:
    """Decide one firing of a batch that raised an error; after a second error it has failed.

    Adds the firing to `decided`, or returns 1 if it has failed.
    """
    try:
        decided += in_transaction(partial(_decide_for_agent, agent_id, [firing_id], now))
        return 0
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        return in_transaction(
            partial(_fail_firing, firing_id, now, f"the work item could not be created: {error}")
        )


def _fail_firing(firing_id: int, now: datetime, note: str) -> int:
    firing = Firing.objects.filter(pk=firing_id, outcome="")
    schedule_id = firing.values_list("schedule_id", flat=True).first()
    failed = firing.update(outcome=Firing.Outcome.FAILED)
    if failed and schedule_id is not None:
        schedule_states.end_one_shot(schedule_id, now, "failed", note)
    return failed


def _decide_for_agent(agent_id: int, firing_ids: list[int], now: datetime) -> list[LoggedFiring]:
    gate = lock_agent(agent_id)
    firings = list(_undecided(firing_ids))
    live = read_live_states({firing.schedule_id for firing in firings})
    decisions: dict[Decision, list[Firing]] = {}
    for firing in firings:
        # The agent is locked, so no run of it ends: full slots stay full.
        full = AT_CAPACITY in decisions
        states = live.setdefault(firing.schedule_id, set())
        decision = _decide(firing, gate, states, now, full=full)
        decisions.setdefault(decision, []).append(firing)
    for decision, decided in decisions.items():
        _record(decision, decided)
        if decision[0] == Firing.Outcome.SKIPPED:
            missing = gate is None or gate.block_code == "agent_missing"
            _update_skipped_schedules(decision[1], decided, now, missing=missing)
    return [
        _logged(firing, gate.name if gate else "", decision)
        for decision, decided in decisions.items()
        for firing in decided
    ]


def _logged(firing: Firing, agent: str, decision: Decision) -> LoggedFiring:
    ids = (firing.pk, firing.schedule_id, firing.tenant_id)
    return LoggedFiring(*ids, agent, _trace_id(firing), *decision)


def _trace_id(firing: Firing) -> str:
    return firing_trace_id(firing.schedule_id, firing.due_at, firing.recorded_at)


def _undecided(firing_ids: list[int]) -> "QuerySet[Firing]":
    found = Firing.objects.filter(pk__in=firing_ids, outcome="").select_related("schedule")
    # Without effect on SQLite, where the transaction holds the only lock there is.
    return found.select_for_update(skip_locked=True, of=("self",)).order_by("decide_at", "id")


# The states are literals: SQLite uses a partial index only if the statement contains them.
_LIVE = """
SELECT schedule_id, state FROM drover_work_item
WHERE state IN ('queued', 'admitted') AND schedule_id IN ({})"""


def read_live_states(schedule_ids: Collection[int]) -> dict[int, set[str]]:
    """The states of the unfinished work items of each schedule."""
    live: dict[int, set[str]] = {}
    if schedule_ids:
        marks = ", ".join(["%s"] * len(schedule_ids))
        for schedule_id, state in execute(_LIVE.format(marks), list(schedule_ids)):
            live.setdefault(schedule_id, set()).add(state)
    return live


# --- firings that poll a work source --------------------------------------------------------


def start_polled(firing_id: int, context: str, now: datetime) -> WorkItem | None:
    """Enqueue the item that a poll has claimed; None if the firing no longer polls.

    In the caller's transaction; locks the agent. Raises Refused if the agent refuses work.
    """
    firing = _lock_polling(firing_id)
    if firing is None:
        return None
    item = enqueue_in_transaction(replace(_request_of(firing), context=context), now)
    _record(_decision_of(item), [firing])
    _log_polled(firing, _decision_of(item))
    return item


def skip_polled(firing_id: int, reason: str, now: datetime) -> bool:
    """Skip a firing whose poll has found nothing; in the caller's transaction."""
    firing = _lock_polling(firing_id)
    if firing is None:
        return False
    decision: Decision = (Firing.Outcome.SKIPPED, reason)
    _record(decision, [firing])
    _update_skipped_schedules(reason, [firing], now, missing=False)
    _log_polled(firing, decision)
    return True


def _lock_polling(firing_id: int) -> Firing | None:
    polling = Firing.objects.filter(pk=firing_id, outcome=Firing.Outcome.POLLING)
    agent_id = polling.values_list("schedule__agent", flat=True).first()
    if agent_id is None:
        return None
    lock_agent(agent_id)
    # Read again: the firing may have been skipped before the lock was taken.
    return polling.select_related("schedule").first()


def _log_polled(firing: Firing, decision: Decision) -> None:
    name = Agent.objects.values_list("name", flat=True).get(pk=firing.schedule.agent_id)
    logged = _logged(firing, name, decision)
    transaction.on_commit(lambda: log_decided([logged]))


# --- one firing -----------------------------------------------------------------------------


def _decide(
    firing: Firing, gate: AgentGate | None, live: set[str], now: datetime, *, full: bool
) -> Decision:
    schedule = firing.schedule
    if schedule.state in SCHEDULE_BLOCKS:
        return Firing.Outcome.SKIPPED, SCHEDULE_BLOCKS[schedule.state]
    if gate is None or gate.blocked_reason:
        return Firing.Outcome.SKIPPED, gate.blocked_reason if gate else Firing.Reason.DISABLED
    if reason := _overlap_reason(schedule, live, now):
        return Firing.Outcome.SKIPPED, reason
    polls = gate.has_work_source or schedule.work_source is not None
    # With a work source, items wait there: another Drover with a free slot may take them.
    if (polls or schedule.overlap == Schedule.Overlap.SKIP) and (
        full or find_free_slots(schedule.agent_id, gate) is None
    ):
        return AT_CAPACITY
    if polls:
        return _begin_poll(schedule)
    item = enqueue_in_transaction(_request_of(firing), now)
    live.add(item.state)
    return _decision_of(item)


def _decision_of(item: WorkItem) -> Decision:
    queued = item.state == WorkItem.State.QUEUED
    return (Firing.Outcome.QUEUED if queued else Firing.Outcome.STARTED), ""


def _begin_poll(schedule: Schedule) -> Decision:
    """The work source is asked later, on a thread of its own: it may be slow."""
    if schedule.firings.filter(outcome=Firing.Outcome.POLLING).exists():
        return Firing.Outcome.SKIPPED, Firing.Reason.ALREADY_RUNNING
    return Firing.Outcome.POLLING, ""


def _overlap_reason(schedule: Schedule, live: set[str], now: datetime) -> str:
    """The reason for which unfinished work of the schedule keeps a firing from starting."""
    if schedule.overlap == Schedule.Overlap.CANCEL_OTHER:
        _cancel_other(schedule, now)
        return ""
    busy = live if schedule.overlap == Schedule.Overlap.SKIP else live & {"queued"}
    queueing = schedule.overlap == Schedule.Overlap.QUEUE
    return Firing.Reason.ALREADY_RUNNING.value if busy and not queueing else ""


def _cancel_other(schedule: Schedule, now: datetime) -> None:
    queued = WorkItem.objects.filter(schedule=schedule, state=WorkItem.State.QUEUED)
    for work_item_id in queued.values_list("pk", flat=True):
        lifecycle.drop_work(work_item_id, now, "replaced by a newer firing")
    runs = Run.objects.filter(schedule=schedule, slot__isnull=False)
    request_stop(runs, now, "replaced by a newer firing")


def _request_of(firing: Firing) -> Request:
    return Request(
        tenant_id=firing.tenant_id,
        agent_id=firing.schedule.agent_id,
        trigger=Trigger.SCHEDULE,
        prompt=firing.schedule.prompt,
        requested_by=f"schedule {firing.schedule.name}",
        schedule_id=firing.schedule_id,
        firing_id=firing.pk,
        trace_id=_trace_id(firing),
    )


def _record(decision: Decision, firings: list[Firing]) -> None:
    outcome, reason = decision
    decided = Firing.objects.filter(pk__in=[firing.pk for firing in firings])
    decided.update(outcome=outcome, reason=reason)


def _update_skipped_schedules(
    reason: str, firings: list[Firing], now: datetime, *, missing: bool
) -> None:
    """Update the schedules of skipped firings: count them, pause or end the schedules."""
    _count_skipped(firings, now)
    for schedule in (firing.schedule for firing in firings):
        if schedule.state in SCHEDULE_BLOCKS:
            continue
        if missing and reason == Firing.Reason.DISABLED:
            schedule_states.pause_schedule(schedule.pk, now, AGENT_MISSING)
        elif schedule.one_shot and reason == Firing.Reason.TENANT_DISABLED:
            schedule_states.pause_schedule(schedule.pk, now, TENANT_DISABLED)
        elif schedule.one_shot:
            schedule_states.end_one_shot(schedule.pk, now, "failed", f"skipped: {reason}")


def _count_skipped(firings: list[Firing], now: datetime) -> None:
    by_count: dict[int, list[int]] = {}
    for schedule_id, count in Counter(firing.schedule_id for firing in firings).items():
        by_count.setdefault(count, []).append(schedule_id)
    for count, schedule_ids in by_count.items():
        schedules = Schedule.objects.filter(pk__in=schedule_ids)
        schedules.update(skipped_count=F("skipped_count") + count, updated_at=now)
