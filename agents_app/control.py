"""What people do to a fleet: pause, resume, scale, stop; each act is noted in the journal.

What they do to a single schedule is in schedules.py.
"""

from collections.abc import Callable
from datetime import datetime

from django.db.models import QuerySet

from agents_app import dispatch, journal, lifecycle
from agents_app.commit import in_transaction
from agents_app.errors import Refused
from agents_app.models import Agent, ResourceLock, Run, Scheduler, Tenant, WorkItem
from agents_app.slots import lock_agents

# --- pause and resume -----------------------------------------------------------------------


def pause_tenant(tenant: Tenant, by: str, now: datetime, note: str = "") -> bool:
    """The whole scheduler, as far as this tenant is concerned; it lasts across restarts."""
    free = Tenant.objects.filter(pk=tenant.pk, paused_at__isnull=True)
    return _act(
        lambda: free.update(paused_at=now, pause_note=note),
        journal.Entry("scheduler.paused", now, tenant.pk, detail=_said(by, note)),
    )


def resume_tenant(tenant: Tenant, by: str, now: datetime) -> bool:
    paused = Tenant.objects.filter(pk=tenant.pk, paused_at__isnull=False)
    resumed = _act(
        lambda: paused.update(paused_at=None, pause_note=""),
        journal.Entry("scheduler.resumed", now, tenant.pk, detail=by),
    )
    dispatch.admit_tenant(tenant.pk, now)
    return resumed


def pause_agent(agent: Agent, by: str, now: datetime, note: str = "") -> bool:
    free = Agent.objects.filter(pk=agent.pk, paused_at__isnull=True)
    return _act(
        lambda: free.update(paused_at=now, pause_note=note),
        journal.Entry("agent.paused", now, agent.tenant_id, agent.pk, detail=_said(by, note)),
    )


def resume_agent(agent: Agent, by: str, now: datetime) -> bool:
    paused = Agent.objects.filter(pk=agent.pk, paused_at__isnull=False)
    resumed = _act(
        lambda: paused.update(paused_at=None, pause_note=""),
        journal.Entry("agent.resumed", now, agent.tenant_id, agent.pk, detail=by),
    )
    dispatch.admit_tenant(agent.tenant_id, now)
    return resumed


# --- scale ----------------------------------------------------------------------------------


def scale_agent(agent: Agent, scale: int, by: str, now: datetime) -> None:
    """Holds until the agent's file changes; a lower scale lets what runs finish."""
    if not 0 <= scale <= 10_000:
        raise Refused(f"a scale of {scale} is out of range: give a number from 0 to 10000")
    _act(
        lambda: Agent.objects.filter(pk=agent.pk).update(scale=scale),
        journal.Entry("agent.scaled", now, agent.tenant_id, agent.pk, detail=f"{by}: {scale}"),
    )
    dispatch.admit_tenant(agent.tenant_id, now)


# --- start and stop -------------------------------------------------------------------------


def begin(now: datetime) -> None:
    """The scheduler runs (again): what a shutdown held back may start."""
    set_scheduler_state(Scheduler.State.RUNNING, started_at=now)


def begin_if_stopped(now: datetime) -> None:
    """For a beat that is started by itself, not by `up`."""
    if not Scheduler.objects.filter(pk=1).exclude(state=Scheduler.State.STOPPED).exists():
        begin(now)


def unfinished(runs: "QuerySet[Run]") -> "QuerySet[Run]":
    return runs.filter(slot__isnull=False)


def stop_run(run: Run, by: str, now: datetime) -> bool:
    return dispatch.request_stop([run], now, f"stopped by {by}") == 1


def stop_agent(agent: Agent, by: str, now: datetime) -> int:
    return dispatch.request_stop(unfinished(agent.runs.all()), now, f"stopped by {by}")


def begin_shutdown(now: datetime, *, keep_queue: bool) -> int:
    """No new runs from here on; returns how many items were cleared, for `restore_cleared`."""
    reason = "the scheduler was stopped"

    def change() -> int:
        Scheduler.objects.update_or_create(pk=1, defaults={"state": Scheduler.State.STOPPING})
        if keep_queue:
            return 0
        pending = list(Run.objects.filter(state=Run.State.PENDING))
        lock_agents(run.agent_id for run in pending)
        cleared = WorkItem.State.CLEARED
        ended = sum(lifecycle.stop_pending(run, now, reason, cleared) for run in pending)
        return ended + _clear(WorkItem.objects.all(), now, reason)

    return in_transaction(change)


def clear_queue(items: "QuerySet[WorkItem]", by: str, now: datetime) -> int:
    """What waits among these; restorable."""
    return in_transaction(lambda: _clear(items, now, f"cleared by {by}"))


def _clear(items: "QuerySet[WorkItem]", now: datetime, reason: str) -> int:
    # In this order, as whoever else drops or clears several: two never wait for each other.
    waiting = items.filter(state=WorkItem.State.QUEUED).order_by("pk").values_list("pk", flat=True)
    return sum(lifecycle.clear(pk, now, reason) for pk in list(waiting))


def drop_work(item: WorkItem, by: str, now: datetime) -> bool:
    reason = f"dropped by {by}"
    about = f"work item {item.pk}: {reason}"

    def drop() -> bool:
        # First, as everywhere: the end of a one-shot's work is the end of its schedule.
        lock_agents([item.agent_id])
        return lifecycle.drop(item.pk, now, reason)

    return _act(
        drop,
        journal.Entry("work.dropped", now, item.tenant_id, item.agent_id, detail=about),
    )


def break_lock(lock: ResourceLock, by: str, now: datetime) -> bool:
    """Somebody else may have it from now on; its holder's release will find nothing."""
    about = f"{lock.uri}, held by {lock.holder}: {by}"
    return _act(
        lambda: ResourceLock.objects.filter(pk=lock.pk).delete()[0],
        journal.Entry("lock.broken", now, lock.tenant_id, run_id=lock.run_id, detail=about),
    )


def restore_cleared(tenant: Tenant, now: datetime) -> int:
    """What a shutdown cleared goes back to its queue, in its old order."""
    cleared = WorkItem.objects.filter(tenant=tenant, state=WorkItem.State.CLEARED).order_by("id")
    items = list(cleared.values_list("pk", flat=True))

    def change() -> int:
        return sum(lifecycle.restore(pk, WorkItem.State.CLEARED, now) for pk in items)

    restored = in_transaction(change)
    dispatch.admit_tenant(tenant.pk, now)
    return restored


def set_scheduler_state(state: str, **columns: datetime) -> None:
    in_transaction(
        lambda: Scheduler.objects.update_or_create(pk=1, defaults={"state": state, **columns})
    )


# --- the parts ------------------------------------------------------------------------------


def _act(change: Callable[[], int | bool], entry: journal.Entry) -> bool:
    """The change and its entry, or neither."""

    def both() -> bool:
        moved = bool(change())
        if moved:
            journal.record(entry)
        return moved

    return in_transaction(both)


def _said(by: str, note: str) -> str:
    return f"{by}: {note}" if note else by
