"""Enqueues work items, admits them to free slots (oldest first), stops and reruns runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import uuid4

from django.db import transaction
from django.db.models import QuerySet

from agents_app.database import fetch_one, in_transaction, insert_many
from agents_app.errors import NotFound, Refused
from agents_app.events import journal, relay
from agents_app.models import LENT, Firing, Run, Tenant, Trigger, WorkItem
from agents_app.runs import lifecycle, loans
from agents_app.runs.job import Job
from agents_app.runs.slots import AgentGate, find_free_slots, lock_agent, lock_agents, lock_tenant

MOST_WORK_READ = 1000
_QUEUE = """
SELECT work_queue_size, (
    SELECT count(*) FROM drover_work_item w WHERE w.agent_id = a.id AND w.state = 'queued')
FROM drover_agent a WHERE a.id = %s"""
_WORK = {
    **dict.fromkeys(("tenant_id", "agent_id"), "bigint"),
    **dict.fromkeys(("state", "reason", "trigger", "prompt", "context"), "text"),
    **dict.fromkeys(("requested_by", "idempotency_key", "trace_id"), "text"),
    "attempts": "integer",
    "delivery_id": "bigint",
    **dict.fromkeys(("created_at", "available_at"), "timestamptz"),
}


@dataclass(frozen=True, slots=True)
class Request:
    """The values of a new work item."""

    tenant_id: int
    agent_id: int
    trigger: Trigger
    prompt: str = ""
    context: str = ""
    requested_by: str = ""
    idempotency_key: str | None = None
    schedule_id: int | None = None
    firing_id: int | None = None
    delivery_id: int | None = None
    rule_id: int | None = None
    rerun_of_id: int | None = None
    # Of a call: the calling run, and the number of calls above the new one.
    parent_run_id: int | None = None
    depth: int = 0
    # The trace of the request; empty: a new trace.
    trace_id: str = ""


# --- enqueueing -----------------------------------------------------------------------------


def enqueue(request: Request, now: datetime) -> WorkItem:
    """Commit a work item, admitted if a slot is free, otherwise queued."""
    return in_transaction(lambda: enqueue_in_transaction(request, now))


def enqueue_in_transaction(request: Request, now: datetime) -> WorkItem:
    """`enqueue` in the caller's transaction; locks the agent."""
    gate = lock_agent(request.agent_id)
    if gate is None:
        raise NotFound("there is no such agent")
    if gate.block and gate.block.refuses_work:
        raise Refused(gate.block.refusal(request.agent_id))
    item, created = _write(request, now)
    if created:
        _admit(request.agent_id, now, at_most=1, gate=gate)
        _drop_overflow(request.agent_id, now)
        item.refresh_from_db()
    return item


def enqueue_many_in_transaction(requests: Sequence[Request], now: datetime) -> dict[int, str]:
    """Write work items that each have an idempotency key, in the caller's transaction.

    Locks all agents. Returns the agents that refuse work with their reason: nothing is written
    for them.
    """
    gates = {agent_id: lock_agent(agent_id) for agent_id in sorted({r.agent_id for r in requests})}
    refusing = {
        agent_id: gate.blocked_reason if gate else str(Firing.Reason.DISABLED)
        for agent_id, gate in gates.items()
        if gate is None or gate.refuses_work
    }
    accepted = [request for request in requests if request.agent_id not in refusing]
    insert_many("drover_work_item", _WORK, [_work_values(each, now) for each in accepted], "id")
    # Tenants with a cap are locked after all agents and always in one order.
    for agent_id in sorted(gates.keys() - refusing.keys(), key=lambda each: _tenant(gates[each])):
        _admit(agent_id, now, gate=gates[agent_id])
        _drop_overflow(agent_id, now)
    return refusing


def _tenant(gate: AgentGate | None) -> int:
    return gate.tenant_id if gate else 0


def _work_values(request: Request, now: datetime) -> tuple[Any, ...]:
    return (
        *(request.tenant_id, request.agent_id, str(WorkItem.State.QUEUED), ""),
        *(str(request.trigger), request.prompt, request.context, request.requested_by),
        *(
            request.idempotency_key,
            request.trace_id or uuid4().hex,
            0,
            request.delivery_id,
            now,
            now,
        ),
    )


def _write(request: Request, now: datetime) -> tuple[WorkItem, bool]:
    values = {
        "agent_id": request.agent_id,
        "trigger": request.trigger,
        "prompt": request.prompt,
        "context": request.context,
        "requested_by": request.requested_by,
        "schedule_id": request.schedule_id,
        "firing_id": request.firing_id,
        "delivery_id": request.delivery_id,
        "rule_id": request.rule_id,
        "rerun_of_id": request.rerun_of_id,
        "parent_run_id": request.parent_run_id,
        "depth": request.depth,
        "trace_id": request.trace_id or uuid4().hex,
        "created_at": now,
        "available_at": now,
    }
    if request.idempotency_key is None:
        return WorkItem.objects.create(tenant_id=request.tenant_id, **values), True
    return WorkItem.objects.get_or_create(
        tenant_id=request.tenant_id, idempotency_key=request.idempotency_key, defaults=values
    )


def _drop_overflow(agent_id: int, now: datetime) -> None:
    """Drop the oldest work items of a queue that is too long, with an event for each."""
    row = fetch_one(_QUEUE, [agent_id])
    size, count = (max(1, row[0]), row[1]) if row else (1, 0)
    if count <= size:
        return
    waiting = WorkItem.objects.filter(agent=agent_id, state=WorkItem.State.QUEUED).order_by("id")
    reason = f"overflow: more than {size} work items were queued"
    for item in waiting[: count - size]:
        if lifecycle.drop_work(item.pk, now, reason):
            journal.record(_overflow(item, now, reason))


def _overflow(item: WorkItem, now: datetime, reason: str) -> journal.JournalEntry:
    about = f"work item {item.pk}: {reason}"
    ids = (item.tenant_id, item.agent_id, None)
    return journal.JournalEntry("work.overflowed", now, *ids, about, item.trace_id)


# --- admitting ------------------------------------------------------------------------------


def admit_waiting(agent_id: int, now: datetime) -> int:
    """Commit the admission of queued work to the agent's free slots; returns the number."""
    return in_transaction(lambda: _admit(agent_id, now))


def admit_tenant(tenant_id: int, now: datetime) -> int:
    """Commit the admission of queued work of all agents of the tenant; returns the number."""
    capped = admit_under_cap(tenant_id, now)
    if capped is not None:
        return capped
    agents = list(_waiting(tenant_id, now).order_by().values_list("agent_id", flat=True).distinct())
    return sum(admit_waiting(agent_id, now) for agent_id in agents)


def admit_under_cap(tenant_id: int, now: datetime) -> int | None:
    """Admit the oldest work items of a tenant with a cap; None: the tenant has no cap."""
    scale = Tenant.objects.filter(pk=tenant_id).values_list("scale", flat=True).first()
    if scale is None:
        return None
    taken = Run.objects.filter(tenant=tenant_id, slot__isnull=False)
    free = scale - taken.exclude(project_slot__gte=LENT).count()
    admitted = 0
    for agent_id in _waiting(tenant_id, now).values_list("agent_id", flat=True)[:MOST_WORK_READ]:
        if admitted >= free:
            break
        admitted += in_transaction(partial(_admit, agent_id, now, at_most=1))
    return admitted


def _waiting(tenant_id: int, now: datetime) -> "QuerySet[WorkItem]":
    queued = WorkItem.objects.filter(tenant=tenant_id, state=WorkItem.State.QUEUED)
    return queued.filter(available_at__lte=now).order_by("id")


def _admit(agent_id: int, now: datetime, at_most: int = 1000, gate: AgentGate | None = None) -> int:
    gate = gate or lock_agent(agent_id)
    if gate is None or gate.blocked_reason:
        return 0
    for admitted in range(at_most):
        slots = find_free_slots(agent_id, gate)
        job = lifecycle.admit_oldest_work(agent_id, gate, slots, now) if slots else None
        if job is None:
            return admitted
        hint_after_commit(job)
    return at_most


def admit_on_loan(work_item_id: int, now: datetime) -> bool:
    """Commit the admission of a called work item to a slot that a waiting caller lends."""

    def change() -> bool:
        found = loans.find_loan(work_item_id, now)
        job = lifecycle.admit_called_work(work_item_id, *found, now) if found else None
        if job is not None:
            hint_after_commit(job)
        return job is not None

    return loans.has_lender(work_item_id, now) and in_transaction(change)


def hint_after_commit(job: Job) -> None:
    transaction.on_commit(lambda: relay.hint(job.run_id, job.agent_id))


# --- stopping and rerunning -----------------------------------------------------------------


def request_stop(runs: Iterable[Run], now: datetime, reason: str, by: str = "") -> int:
    """End pending runs, and request the end of running runs from their workers; returns the number.

    Commits; locks the agents, then the tenants of runs with a loan. `by` is empty if a limit or the
    end of Drover stops the runs.
    """

    def change() -> int:
        found = list(runs)
        lock_agents(run.agent_id for run in found)
        # Before the rows of the runs: returning a lent slot locks in this order.
        for tenant_id in sorted({run.tenant_id for run in found if _on_loan(run)}):
            lock_tenant(tenant_id)
        return sum(_request_stop(run, now, reason, by) for run in found)

    return in_transaction(change)


def _on_loan(run: Run) -> bool:
    lends = max(run.slot or 0, run.project_slot or 0) >= LENT
    return lends or bool(run.borrowed_from_id or run.project_borrowed_from_id)


def _request_stop(run: Run, now: datetime, reason: str, by: str) -> bool:
    if lifecycle.stop_pending_run(run, now, reason, by=by):
        _admit(run.agent_id, now, at_most=1)
        return True
    running = Run.objects.filter(pk=run.pk, slot__isnull=False, stop_requested_at__isnull=True)
    if not running.update(stop_requested_at=now, error=reason):
        return False
    ids = (run.tenant_id, run.agent_id, run.pk)
    journal.record(
        journal.JournalEntry("run.stop_requested", now, *ids, reason, run.trace_id, actor=by)
    )
    return True


def enqueue_rerun(run: Run, requested_by: str, now: datetime, trace_id: str = "") -> WorkItem:
    """Commit a work item with the same input; it does not count as a firing of the schedule."""
    same = Request(
        tenant_id=run.tenant_id,
        agent_id=run.agent_id,
        trigger=Trigger.MANUAL,
        prompt=run.work_item.prompt,
        context=run.work_item.context,
        requested_by=f"{requested_by}, rerun of run {run.pk}",
        rerun_of_id=run.pk,
        trace_id=trace_id,
    )

    def change() -> WorkItem:
        item = enqueue_in_transaction(same, now)
        about = f"{requested_by}: work item {item.pk}"
        ids = (run.tenant_id, run.agent_id, run.pk)
        journal.record(
            journal.JournalEntry("run.rerun", now, *ids, about, item.trace_id, actor=requested_by)
        )
        return item

    return in_transaction(change)
