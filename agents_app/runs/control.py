"""Commands of users and rules for a fleet: run, pause, resume, scale, stop, clear, restore.

Each commits its change together with its event. Commands for a schedule are in schedules/edit.py.
"""

from collections import Counter
from collections.abc import Callable, Collection
from datetime import datetime

from django.db.models import QuerySet

from agents_app.database import in_transaction
from agents_app.errors import Refused
from agents_app.events import journal
from agents_app.models import (
    DEFAULT_TENANT,
    Agent,
    ResourceLock,
    Run,
    Scheduler,
    Tenant,
    Trigger,
    WorkClaim,
    WorkItem,
)
from agents_app.runs import dispatch, lifecycle
from agents_app.runs.dispatch import Request
from agents_app.runs.readiness import read_scheduler
from agents_app.runs.slots import lock_agents

RESTORABLE = frozenset({WorkItem.State.DROPPED, WorkItem.State.CLEARED})

# --- run ------------------------------------------------------------------------------------


def run_agent(
    agent: Agent,
    by: str,
    now: datetime,
    *,
    prompt: str = "",
    idempotency_key: str | None = None,
    trace_id: str = "",
) -> WorkItem:
    """Enqueue work for the agent; a repeated idempotency key returns the existing work item."""
    request = Request(
        tenant_id=agent.tenant_id,
        agent_id=agent.pk,
        trigger=Trigger.MANUAL,
        prompt=prompt,
        requested_by=by,
        idempotency_key=idempotency_key,
        trace_id=trace_id,
    )

    def change() -> WorkItem:
        item = dispatch.enqueue_in_transaction(request, now)
        if item.created_at == now:
            about = f"{by}: work item {item.pk}"
            ids = (agent.tenant_id, agent.pk, None)
            entry = journal.JournalEntry(
                "work.requested", now, *ids, about, item.trace_id, actor=by
            )
            journal.record(entry)
        return item

    return in_transaction(change)


# --- pause and resume -----------------------------------------------------------------------


def pause_tenant(tenant: Tenant, by: str, now: datetime, note: str = "") -> bool:
    """Pause the scheduler for one tenant; the pause lasts across restarts."""
    unpaused = Tenant.objects.filter(pk=tenant.pk, paused_at__isnull=True)
    return _commit_with_event(
        lambda: unpaused.update(paused_at=now, pause_note=note),
        journal.JournalEntry(
            "scheduler.paused", now, tenant.pk, detail=_with_note(by, note), actor=by
        ),
    )


def resume_tenant(tenant: Tenant, by: str, now: datetime) -> bool:
    paused = Tenant.objects.filter(pk=tenant.pk, paused_at__isnull=False)
    resumed = _commit_with_event(
        lambda: paused.update(paused_at=None, pause_note=""),
        journal.JournalEntry("scheduler.resumed", now, tenant.pk, detail=by, actor=by),
    )
    dispatch.admit_tenant(tenant.pk, now)
    return resumed


def pause_agent(agent: Agent, by: str, now: datetime, note: str = "") -> bool:
    unpaused = Agent.objects.filter(pk=agent.pk, paused_at__isnull=True)
    detail = _with_note(by, note)
    return _commit_with_event(
        lambda: unpaused.update(paused_at=now, pause_note=note),
        journal.JournalEntry(
            "agent.paused", now, agent.tenant_id, agent.pk, detail=detail, actor=by
        ),
    )


def resume_agent(agent: Agent, by: str, now: datetime) -> bool:
    paused = Agent.objects.filter(pk=agent.pk, paused_at__isnull=False)
    resumed = _commit_with_event(
        lambda: paused.update(paused_at=None, pause_note=""),
        journal.JournalEntry("agent.resumed", now, agent.tenant_id, agent.pk, detail=by, actor=by),
    )
    dispatch.admit_tenant(agent.tenant_id, now)
    return resumed


# --- scale ----------------------------------------------------------------------------------


def scale_agent(agent: Agent, scale: int, by: str, now: datetime) -> None:
    """Set the scale until the agent's file changes; a lower scale ends no run."""
    if not 0 <= scale <= 10_000:
        raise Refused(f"a scale of {scale} is out of range: give a number from 0 to 10000")
    _commit_with_event(
        lambda: Agent.objects.filter(pk=agent.pk).update(scale=scale),
        journal.JournalEntry(
            "agent.scaled", now, agent.tenant_id, agent.pk, detail=f"{by}: {scale}", actor=by
        ),
    )
    dispatch.admit_tenant(agent.tenant_id, now)


# --- start and stop -------------------------------------------------------------------------


def start_scheduler(now: datetime) -> None:
    """Mark the scheduler as running, so that agents may start work."""
    set_scheduler_state(Scheduler.State.RUNNING, started_at=now)


def start_scheduler_if_stopped(now: datetime) -> None:
    """`start_scheduler` for a beat that is started without `up`.

    Also after a drain whose processes were killed before its end.
    """
    if read_scheduler(now).state == Scheduler.State.STOPPED:
        start_scheduler(now)


def filter_unfinished(runs: "QuerySet[Run]") -> "QuerySet[Run]":
    return runs.filter(slot__isnull=False)


def stop_run(run: Run, by: str, now: datetime) -> bool:
    """False: the run had been asked to stop before. Refuses a run that has ended."""
    if run.slot is None:
        raise Refused(f"run {run.pk} has ended already: {run.state}")
    return dispatch.request_stop([run], now, f"stopped by {by}", by=by) == 1


def stop_agent(agent: Agent, by: str, now: datetime) -> int:
    def change() -> int:
        runs = filter_unfinished(agent.runs.all())
        stopping = dispatch.request_stop(runs, now, f"stopped by {by}", by=by)
        about = f"{by}: {stopping} run{'' if stopping == 1 else 's'} being stopped"
        entry = journal.JournalEntry(
            "agent.stopped", now, agent.tenant_id, agent.pk, detail=about, actor=by
        )
        if stopping:
            journal.record(entry)
        return stopping

    return in_transaction(change)


def begin_drain(by: str, now: datetime, *, keep_queue: bool) -> int:
    """Keep new runs from starting; returns the number of cleared work items.

    A scheduler that is draining stays as it is: work that was queued during the drain is kept.
    `shutdown.begin_drain` also lets the processes exit when the last run has ended.
    """
    not_draining = Scheduler.objects.filter(pk=1).exclude(state=Scheduler.State.DRAINING)

    def change() -> int:
        Scheduler.objects.get_or_create(pk=1)
        if not not_draining.update(state=Scheduler.State.DRAINING):
            return 0
        cleared = 0 if keep_queue else _clear_all(now, "the scheduler was stopped")
        about = f"{by}: {'queues kept' if keep_queue else f'{cleared} cleared'}"
        journal.record(
            journal.JournalEntry(
                "scheduler.stopping", now, _own_tenant().pk, detail=about, actor=by
            )
        )
        return cleared

    return in_transaction(change)


def record_stopped(now: datetime, *, was: Collection[str]) -> bool:
    """Record the end of a drain, if the scheduler is in one of the given states."""
    ending = Scheduler.objects.filter(pk=1, state__in=was)

    def change() -> bool:
        stopped = bool(ending.update(state=Scheduler.State.STOPPED))
        if stopped:
            journal.record(journal.JournalEntry("scheduler.stopped", now, _own_tenant().pk))
        return stopped

    return in_transaction(change)


def _own_tenant() -> Tenant:
    """The default tenant, which gets the events of the scheduler.

    A drain affects all tenants, but only the default tenant may see who began it."""
    tenant, _ = Tenant.objects.get_or_create(name=DEFAULT_TENANT)
    return tenant


# --- the queue ------------------------------------------------------------------------------


def clear_queue(items: "QuerySet[WorkItem]", by: str, now: datetime) -> int:
    """Clear the queued work items among `items`; cleared work items can be restored."""

    def change() -> int:
        cleared = _clear(items, now, f"cleared by {by}")
        for tenant_id, count in Counter(tenant_id for tenant_id, _ in cleared).items():
            agents = {agent_id for owner, agent_id in cleared if owner == tenant_id}
            agent_id = agents.pop() if len(agents) == 1 else None
            about = f"{by}: {count} of {'all queues' if agent_id is None else 'this queue'}"
            journal.record(
                journal.JournalEntry(
                    "queue.cleared", now, tenant_id, agent_id, detail=about, actor=by
                )
            )
        return len(cleared)

    return in_transaction(change)


def _clear_all(now: datetime, reason: str) -> int:
    """Clear all queues and end all pending runs; locks the agents of these runs."""
    pending = list(Run.objects.filter(state=Run.State.PENDING))
    lock_agents(run.agent_id for run in pending)
    cleared = WorkItem.State.CLEARED
    ended = sum(lifecycle.stop_pending_run(run, now, reason, cleared) for run in pending)
    return ended + len(_clear(WorkItem.objects.all(), now, reason))


def _clear(items: "QuerySet[WorkItem]", now: datetime, reason: str) -> list[tuple[int, int]]:
    """Returns the tenant and the agent of each cleared work item."""
    # All changes of several work items lock them in this order, against deadlocks.
    waiting = items.filter(state=WorkItem.State.QUEUED).order_by("pk")
    found = list(waiting.values_list("pk", "tenant_id", "agent_id"))
    return [(owner, agent) for pk, owner, agent in found if lifecycle.clear_work(pk, now, reason)]


def drop_work(item: WorkItem, by: str, now: datetime) -> bool:
    reason = f"dropped by {by}"
    about = f"work item {item.pk}: {reason}"

    def drop() -> bool:
        # Before the work item: dropping the work of a one-shot ends its schedule.
        lock_agents([item.agent_id])
        return lifecycle.drop_work(item.pk, now, reason)

    return _commit_with_event(
        drop,
        journal.JournalEntry(
            "work.dropped", now, item.tenant_id, item.agent_id, detail=about, actor=by
        ),
    )


def restore_work(item: WorkItem, by: str, now: datetime) -> bool:
    about = f"work item {item.pk}: restored by {by}"
    if WorkClaim.objects.filter(work_item=item, stage=WorkClaim.Stage.ENDED).exists():
        raise Refused(
            f"work item {item.pk} had an item of a work source, which has been given back: the "
            "schedule takes it again when it is ready"
        )
    restored = item.state in RESTORABLE and _commit_with_event(
        lambda: lifecycle.restore_work(item.pk, item.state, now),
        journal.JournalEntry(
            "work.restored", now, item.tenant_id, item.agent_id, detail=about, actor=by
        ),
    )
    if restored:
        dispatch.admit_waiting(item.agent_id, now)
    return restored


def break_lock(lock: ResourceLock, by: str, now: datetime) -> bool:
    """Delete a lock, so that another run may take it; its holder's release does nothing then."""
    about = f"{lock.uri}, held by {lock.holder}: {by}"
    return _commit_with_event(
        lambda: ResourceLock.objects.filter(pk=lock.pk).delete()[0],
        journal.JournalEntry(
            "lock.broken", now, lock.tenant_id, run_id=lock.run_id, detail=about, actor=by
        ),
    )


def restore_cleared(tenant: Tenant, by: str, now: datetime) -> int:
    """Return all cleared work items of a tenant to their queues in their old order."""
    cleared = WorkItem.objects.filter(tenant=tenant, state=WorkItem.State.CLEARED).order_by("id")
    # Items of work sources that were given back are taken again by their schedules.
    cleared = cleared.exclude(claim__stage=WorkClaim.Stage.ENDED)
    items = list(cleared.values_list("pk", flat=True))

    def change() -> int:
        restored = sum(lifecycle.restore_work(pk, WorkItem.State.CLEARED, now) for pk in items)
        entry = journal.JournalEntry(
            "queue.restored", now, tenant.pk, detail=f"{by}: {restored}", actor=by
        )
        if restored:
            journal.record(entry)
        return restored

    restored = in_transaction(change)
    dispatch.admit_tenant(tenant.pk, now)
    return restored


def set_scheduler_state(state: str, **columns: datetime) -> None:
    in_transaction(
        lambda: Scheduler.objects.update_or_create(pk=1, defaults={"state": state, **columns})
    )


# --- parts --------------------------------------------------------------------------------


def _commit_with_event(change: Callable[[], int | bool], entry: journal.JournalEntry) -> bool:
    """Commit the change together with its event; without a change there is no event."""

    def change_and_record() -> bool:
        changed = bool(change())
        if changed:
            journal.record(entry)
        return changed

    return in_transaction(change_and_record)


def _with_note(by: str, note: str) -> str:
    return f"{by}: {note}" if note else by
