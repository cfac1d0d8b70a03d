"""Work is written, then admitted to a free slot; a firing learns here what became of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import uuid4

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import QuerySet

from agents_app import lifecycle, relay
from agents_app.commit import in_transaction
from agents_app.errors import NotFound, Refused
from agents_app.job import Job
from agents_app.models import Agent, Firing, Run, Schedule, Tenant, Trigger, WorkItem
from agents_app.slots import free_place, lock_agents, read_gate

log = structlog.get_logger("drover.dispatch")
FIRINGS_IN_ONE_COMMIT = 100
MOST_LOOKED_AT = 1000
# A schedule that a person put out of use after its firing was recorded.
OUT_OF_USE: dict[str, str] = {
    Schedule.State.PAUSED: Firing.Reason.PAUSED,
    Schedule.State.CANCELED: Firing.Reason.DISABLED,
}


@dataclass(frozen=True, slots=True)
class Request:
    """Something somebody wants an agent to do."""

    tenant_id: int
    agent_id: int
    trigger: Trigger
    prompt: str = ""
    context: str = ""
    requested_by: str = ""
    idempotency_key: str | None = None
    schedule_id: int | None = None
    firing_id: int | None = None


# --- asking ---------------------------------------------------------------------------------


def enqueue(request: Request, now: datetime) -> WorkItem:
    """Durable when it returns; started at once if a slot is free, else queued, oldest first."""
    return in_transaction(lambda: _enqueue(request, now))


def _enqueue(request: Request, now: datetime) -> WorkItem:
    gate = read_gate(request.agent_id)
    if gate is None:
        raise NotFound("there is no such agent")
    if gate.closed_because in {"disabled", "tenant_disabled"}:
        raise Refused(
            f"the agent is {gate.closed_because.replace('_', ' ')}: give it a scale above 0, "
            "put its directory back, or enable its tenant"
        )
    item, created = _write(request, now)
    if created:
        _admit(request.agent_id, now, at_most=1)
        _drop_overflow(request.agent_id, now)
        item.refresh_from_db()
    return item


def _write(request: Request, now: datetime) -> tuple[WorkItem, bool]:
    values = {
        "agent_id": request.agent_id,
        "trigger": request.trigger,
        "prompt": request.prompt,
        "context": request.context,
        "requested_by": request.requested_by,
        "schedule_id": request.schedule_id,
        "firing_id": request.firing_id,
        "trace_id": uuid4().hex,
        "created_at": now,
        "available_at": now,
    }
    if request.idempotency_key is None:
        return WorkItem.objects.create(tenant_id=request.tenant_id, **values), True
    return WorkItem.objects.get_or_create(
        tenant_id=request.tenant_id, idempotency_key=request.idempotency_key, defaults=values
    )


def _drop_overflow(agent_id: int, now: datetime) -> None:
    """A full queue loses its oldest item, never silently."""
    size = max(1, Agent.objects.values_list("work_queue_size", flat=True).get(pk=agent_id))
    waiting = WorkItem.objects.filter(agent=agent_id, state=WorkItem.State.QUEUED).order_by("id")
    too_many = waiting.count() - size
    for item in waiting[: max(0, too_many)]:
        if lifecycle.drop(item.pk, now, f"overflow: more than {size} items were waiting"):
            log.warning("work.dropped", work_item_id=item.pk, agent_id=agent_id, queue_size=size)


# --- admitting ------------------------------------------------------------------------------


def admit_waiting(agent_id: int, now: datetime) -> int:
    """Fill the agent's free slots: after a resume, a raised scale, a retry whose time has come."""
    return in_transaction(lambda: _admit(agent_id, now))


def admit_tenant(tenant_id: int, now: datetime) -> int:
    """Fill whatever is free for any agent of the tenant."""
    capped = admit_under_cap(tenant_id, now)
    if capped is not None:
        return capped
    agents = list(_waiting(tenant_id, now).order_by().values_list("agent_id", flat=True).distinct())
    return sum(admit_waiting(agent_id, now) for agent_id in agents)


def admit_under_cap(tenant_id: int, now: datetime) -> int | None:
    """Under a project's cap a free place belongs to who waits longest; None: there is no cap."""
    scale = Tenant.objects.filter(pk=tenant_id).values_list("scale", flat=True).first()
    if scale is None:
        return None
    free = scale - Run.objects.filter(tenant=tenant_id, slot__isnull=False).count()
    admitted = 0
    for agent_id in _waiting(tenant_id, now).values_list("agent_id", flat=True)[:MOST_LOOKED_AT]:
        if admitted >= free:
            break
        admitted += in_transaction(partial(_admit, agent_id, now, at_most=1))
    return admitted


def _waiting(tenant_id: int, now: datetime) -> "QuerySet[WorkItem]":
    queued = WorkItem.objects.filter(tenant=tenant_id, state=WorkItem.State.QUEUED)
    return queued.filter(available_at__lte=now).order_by("id")


def _admit(agent_id: int, now: datetime, at_most: int = 1000) -> int:
    gate = read_gate(agent_id)
    if gate is None or gate.closed_because:
        return 0
    for admitted in range(at_most):
        place = free_place(agent_id, gate)
        job = lifecycle.admit_next(agent_id, gate, place, now) if place else None
        if job is None:
            return admitted
        hint_after_commit(job)
    return at_most


def hint_after_commit(job: Job) -> None:
    transaction.on_commit(lambda: relay.hint(job.run_id, job.agent_id))


# --- firings --------------------------------------------------------------------------------


def decide_firings(now: datetime) -> int:
    """Give every recorded firing its outcome; the ones a crash left behind come first."""
    decided = 0
    while batch := _decide_some(now):
        decided += batch
    return decided


def _decide_some(now: datetime) -> int:
    try:
        return in_transaction(partial(_decide_batch, now, FIRINGS_IN_ONE_COMMIT))
    except (OperationalError, InterfaceError):
        raise  # the database is away: the sweep will come again
    except Exception:
        log.exception("firing.undecidable")
        return _decide_first(now)


def _decide_first(now: datetime) -> int:
    """One of them stands in the way of the others: if it is the first, it has failed."""
    try:
        return in_transaction(partial(_decide_batch, now, 1))
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        return in_transaction(_fail_first_undecided)


def _decide_batch(now: datetime, size: int) -> int:
    firings = list(_undecided()[:size])
    lock_agents(firing.schedule.agent_id for firing in firings)
    for firing in firings:
        outcome, reason = _decide(firing, now)
        firing.outcome, firing.reason = outcome, reason
        if outcome == Firing.Outcome.SKIPPED:
            log.warning("firing.skipped", schedule_id=firing.schedule_id, reason=reason)
    Firing.objects.bulk_update(firings, ["outcome", "reason"])
    return len(firings)


def _undecided() -> "QuerySet[Firing]":
    undecided = Firing.objects.filter(outcome="").select_related("schedule").order_by("id")
    if connection.vendor == "postgresql":
        return undecided.select_for_update(skip_locked=True, of=("self",))
    return undecided


def _fail_first_undecided() -> int:
    first = _undecided()[:1].values_list("pk", flat=True)
    return Firing.objects.filter(pk__in=list(first)).update(outcome=Firing.Outcome.FAILED)


def _decide(firing: Firing, now: datetime) -> tuple[str, str]:
    schedule = firing.schedule
    if schedule.state in OUT_OF_USE:
        return Firing.Outcome.SKIPPED, OUT_OF_USE[schedule.state]
    gate = read_gate(schedule.agent_id)
    if gate is None or gate.closed_because:
        return Firing.Outcome.SKIPPED, gate.closed_because if gate else Firing.Reason.DISABLED
    if reason := _overlap_reason(schedule, now):
        return Firing.Outcome.SKIPPED, reason
    if schedule.overlap == Schedule.Overlap.SKIP and free_place(schedule.agent_id, gate) is None:
        return Firing.Outcome.SKIPPED, Firing.Reason.AT_CAPACITY
    item = _enqueue(_request_of(firing), now)
    queued = item.state == WorkItem.State.QUEUED
    return (Firing.Outcome.QUEUED if queued else Firing.Outcome.STARTED), ""


def _overlap_reason(schedule: Schedule, now: datetime) -> str:
    """What the schedule's earlier, unfinished work means for a new firing."""
    if schedule.overlap == Schedule.Overlap.CANCEL_OTHER:
        _cancel_other(schedule, now)
        return ""
    live = WorkItem.objects.filter(schedule=schedule, state__in=["queued", "admitted"])
    states = set(live.values_list("state", flat=True))
    busy = states if schedule.overlap == Schedule.Overlap.SKIP else states & {"queued"}
    queueing = schedule.overlap == Schedule.Overlap.QUEUE
    return Firing.Reason.ALREADY_RUNNING.value if busy and not queueing else ""


def _cancel_other(schedule: Schedule, now: datetime) -> None:
    queued = WorkItem.objects.filter(schedule=schedule, state=WorkItem.State.QUEUED)
    for work_item_id in queued.values_list("pk", flat=True):
        lifecycle.drop(work_item_id, now, "replaced by a newer firing")
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
    )


# --- stopping and rerunning -----------------------------------------------------------------


def request_stop(runs: Iterable[Run], now: datetime, reason: str) -> int:
    """Pending runs end here; running ones are told, and their worker ends them within a second."""

    def change() -> int:
        found = list(runs)
        lock_agents(run.agent_id for run in found)
        return sum(_request_stop(run, now, reason) for run in found)

    return in_transaction(change)


def _request_stop(run: Run, now: datetime, reason: str) -> bool:
    if lifecycle.stop_pending(run, now, reason):
        _admit(run.agent_id, now, at_most=1)
        return True
    running = Run.objects.filter(pk=run.pk, slot__isnull=False, stop_requested_at__isnull=True)
    return running.update(stop_requested_at=now, error=reason) == 1


def rerun(run: Run, requested_by: str, now: datetime) -> WorkItem:
    """The same input as new work; a person's rerun never counts as the schedule's."""
    item = run.work_item
    return enqueue(
        Request(
            tenant_id=run.tenant_id,
            agent_id=run.agent_id,
            trigger=Trigger.MANUAL,
            prompt=item.prompt,
            context=item.context,
            requested_by=f"{requested_by}, rerun of run {run.pk}",
        ),
        now,
    )
