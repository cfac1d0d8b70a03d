"""The sweep: repairs rows after a crash, a flushed Redis or a lost hint."""

from collections import Counter
from datetime import datetime, timedelta

import structlog
from django.db.models import Q

from agents_app.budgets import holds
from agents_app.conf import CONF
from agents_app.database import in_transaction
from agents_app.events import relay
from agents_app.models import Run, Scheduler, Worker, WorkItem
from agents_app.runners import end_container, end_leftovers
from agents_app.runs import dispatch, lifecycle
from agents_app.schedules import firings
from agents_app.signals import calls, locks, messages
from agents_app.worker import boot_id, is_alive

log = structlog.get_logger("drover.reconcile")
# A guard kills its processes well before the lease ends; the margin is for clocks that differ.
SKEW_SECONDS = 5.0
CLOCK_JUMP_SECONDS = 30.0
HINT_AGAIN_AFTER_SECONDS = 1.0


def reconcile(now: datetime, host: str) -> Counter[str]:
    """Repair everything that can get stuck; returns the number of repairs by kind."""
    found: Counter[str] = Counter()
    found["workers_ended"] = sum(_end_worker(w, now) for w in _dead_workers(now, host))
    found["runs_lost"] = sum(_lose_run_of_dead_worker(run, host, now) for run in _ownerless_runs())
    found["runs_overdue"] = _stop_overdue(now)
    found["firings_decided"] = firings.decide_firings(now)
    found["budgets_turned"] = holds.sweep(now)
    found["calls_ended"] = calls.end_overdue(now)
    found["messages_queued"] = messages.sweep(now)
    found["locks_expired"] = locks.delete_expired(now)
    found["work_admitted"] = _admit_waiting(now)
    found["hints_sent"] = _hint_again(now)
    if any(found.values()):
        log.info("reconcile.mended", **{name: count for name, count in found.items() if count})
    return found


# --- workers and their runs -----------------------------------------------------------------


def _dead_workers(now: datetime, host: str) -> list[Worker]:
    """Workers of this host whose process is gone, and workers of any host whose lease expired."""
    living = Worker.objects.filter(ended_at__isnull=True)
    dead = [worker for worker in living.filter(host=host) if not is_alive(worker)]
    if _may_end_expired_leases(now):
        over = now - timedelta(seconds=SKEW_SECONDS)
        dead += living.filter(lease_until__lt=over).exclude(pk__in=[w.pk for w in dead])
    return dead


def _may_end_expired_leases(now: datetime) -> bool:
    """False for one lease period after the clock jumped or the machine slept.

    In this time workers renew their leases.
    """
    row, _ = Scheduler.objects.get_or_create(pk=1)
    last, hold_until = row.last_reconcile_at, row.reap_after
    longest = timedelta(seconds=CLOCK_JUMP_SECONDS + CONF.reconcile_seconds)
    if last is None or abs(now - last) > longest:
        hold_until = now + timedelta(seconds=CONF.lease_seconds)
    in_transaction(
        lambda: Scheduler.objects.filter(pk=1).update(last_reconcile_at=now, reap_after=hold_until)
    )
    return hold_until is None or now >= hold_until


def _end_worker(worker: Worker, now: datetime) -> int:
    living = Worker.objects.filter(pk=worker.pk, ended_at__isnull=True)
    ended = in_transaction(lambda: living.update(state=Worker.State.DEAD, ended_at=now))
    if ended:
        log.warning("worker.dead", worker_id=worker.pk, worker=worker.name)
    return ended


def _ownerless_runs() -> list[Run]:
    running = Run.objects.filter(state=Run.State.RUNNING, slot__isnull=False)
    ownerless = running.filter(Q(worker__ended_at__isnull=False) | Q(worker__isnull=True))
    return list(ownerless.select_related("agent", "worker"))


def _lose_run_of_dead_worker(run: Run, host: str, now: datetime) -> bool:
    """Mark the run as lost. Kills its processes first if its guard was killed before it did so."""
    here = run.worker is not None and run.worker.host == host
    if _may_be_adopted(run, here, now):
        return False
    if here and not _ensure_dead(run):
        log.warning("run.not_dead_yet", run_id=run.pk)
        return False
    return in_transaction(lambda: lifecycle.lose_run(run, now, "lost: its worker died"))


def _may_be_adopted(run: Run, here: bool, now: datetime) -> bool:
    """A container keeps running: for a lease period a new worker on its machine may take it over.

    A container on another machine cannot be ended from here, so it counts as alive until a stop
    is requested.
    """
    worker = run.worker
    if not run.container or worker is None or worker.ended_at is None:
        return False
    if not here:
        return run.stop_requested_at is None
    until = worker.ended_at + timedelta(seconds=CONF.lease_seconds + SKEW_SECONDS)
    return worker.boot_id == boot_id() and now < until


def _ensure_dead(run: Run) -> bool:
    """Kill the remaining processes and the container of the run; True if none is left."""
    contained = run.container or run.agent.runtime.get("type") == "container"
    dead = not contained or end_container(run.pk, run.trace_id)
    return dead and end_leftovers(run.pk, run.trace_id)


def _stop_overdue(now: datetime) -> int:
    """Request a stop of runs that their worker did not end at their time limit."""
    # After its time limit a program has the grace period to end, and so has a hook after it.
    late = now - timedelta(seconds=3 * CONF.grace_seconds + SKEW_SECONDS)
    # With the slot, which only unfinished runs have: its index leaves the history out.
    overdue = Run.objects.filter(
        slot__isnull=False,
        state=Run.State.RUNNING,
        deadline_at__lt=late,
        stop_requested_at__isnull=True,
    )
    return dispatch.request_stop(overdue, now, "over its time limit")


# --- work and hints -------------------------------------------------------------------------


def _admit_waiting(now: datetime) -> int:
    waiting = WorkItem.objects.filter(state=WorkItem.State.QUEUED, available_at__lte=now)
    tenants = list(waiting.values_list("tenant_id", flat=True).distinct())
    return sum(dispatch.admit_tenant(tenant_id, now) for tenant_id in tenants)


def _hint_again(now: datetime) -> int:
    """Pending runs whose hint is not in Redis any more: lost, flushed, or never sent."""
    stale = now - timedelta(seconds=HINT_AGAIN_AFTER_SECONDS)
    pending = Run.objects.filter(
        slot__isnull=False, state=Run.State.PENDING, hinted_at__lt=stale
    ).order_by("id")
    by_agent: dict[int, list[int]] = {}
    for run_id, agent_id in pending.values_list("pk", "agent_id"):
        by_agent.setdefault(agent_id, []).append(run_id)
    held = relay.waiting_hints(by_agent) if by_agent else None
    if held is None:
        return 0  # nothing to send, or Redis does not answer
    # Hints that are in Redis because all workers are busy must not be sent again.
    lacking = {agent: runs for agent, runs in by_agent.items() if held[agent] < len(runs)}
    return sum(_hint_agent(agent_id, runs, now) for agent_id, runs in lacking.items())


def _hint_agent(agent_id: int, run_ids: list[int], now: datetime) -> int:
    in_transaction(lambda: Run.objects.filter(pk__in=run_ids).update(hinted_at=now))
    for run_id in run_ids:
        relay.hint(run_id, agent_id)
    return len(run_ids)
