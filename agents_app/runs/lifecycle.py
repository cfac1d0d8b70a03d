"""Every change of state of a run or a work item; schedule_states.py has the schedules.

    work item   queued --> admitted --> done | failed
                   |          `-------> queued        (retry, on_lost: retry, or given back)
                   `--> dropped | cleared --> queued  (restore; cleared from admitted, too)
    run         pending --> running --> succeeded | failed | timed_out | stopped | lost | dead
                   `------------------> stopped | lost | dead

A move is one conditional update that names the old state. If it moves no row, another process has
moved the row before, which is a normal result. All functions run in the caller's transaction.
Plain SQL, because the ORM would halve the number of runs per second.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from agents_app.database import execute, fetch_column, fetch_one, move_state, to_database_time
from agents_app.events import journal
from agents_app.models import Run, Trigger, WorkItem
from agents_app.runs import handover, loans, statements
from agents_app.runs.entries import run_entry, start_entries
from agents_app.runs.job import Ending, Job, new_secret
from agents_app.runs.loans import Loan
from agents_app.runs.schedule_states import end_one_shot, settle_schedule
from agents_app.runs.slots import AgentGate, SlotPair, find_free_slots, lock_agent, lock_tenant

R, W = Run.State, WorkItem.State
RUN_MOVES: Mapping[str, frozenset[str]] = {
    R.PENDING: frozenset({R.RUNNING, R.STOPPED, R.LOST, R.DEAD}),
    R.RUNNING: frozenset({R.SUCCEEDED, R.FAILED, R.TIMED_OUT, R.STOPPED, R.LOST, R.DEAD}),
}
WORK_MOVES: Mapping[str, frozenset[str]] = {
    W.QUEUED: frozenset({W.ADMITTED, W.DROPPED, W.CLEARED}),
    W.ADMITTED: frozenset({W.DONE, W.FAILED, W.QUEUED, W.CLEARED}),
    W.CLEARED: frozenset({W.QUEUED}),
    W.DROPPED: frozenset({W.QUEUED}),
}
CALLER_FINISHED = "the caller had already finished"
MOST_LOSSES = 3
LOSS_WINDOW = timedelta(hours=72)
GIVEN_BACK_SECONDS = 1  # until the next sweep may admit it again
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 10, 3600


# --- held resources -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeldResources:
    """The resources of a run besides its slot, and the signals that change its ending.

    `slots` and `debts` are set only for a run that has lent or borrowed a slot. Most runs hold
    nothing: for them one query that finds no row is the whole cost.
    """

    run_id: int
    exit_signal: int | None
    rerun_requested: bool
    signaled: bool
    slots: SlotPair | None = None
    debts: tuple[int | None, int | None] = (None, None)

    def return_slots(self) -> None:
        if self.slots is not None:
            loans.return_slot(self.run_id, self.slots, self.debts)


HOLDS_NOTHING = HeldResources(0, None, False, False)


def _read_held_resources(run_id: int, tenant_id: int) -> HeldResources:
    """Call it before the run ends and with its agent locked, so that the run lends nothing more.

    Locks the tenant if the run has lent or borrowed a slot.
    """
    row = fetch_one(statements.HELD_BY_RUN, [run_id])
    if row is None:
        return HOLDS_NOTHING
    exit_signal, rerun_requested, signaled, on_loan = row
    held = HeldResources(run_id, exit_signal, bool(rerun_requested), bool(signaled))
    if not on_loan:
        return held
    # Loans change only under the lock on the tenant, so they are read after it.
    lock_tenant(tenant_id)
    slots, debts = loans.read_slots_and_debts(run_id)
    return replace(held, slots=slots, debts=debts)


# --- runs -----------------------------------------------------------------------------------


def admit_oldest_work(agent_id: int, gate: AgentGate, slots: SlotPair, now: datetime) -> Job | None:
    """Admit the agent's oldest due work item to the slot; the run waits for a worker."""
    job = _admit_oldest(agent_id, gate, slots, now, None)
    if job is not None:
        journal.record(*start_entries(job, now, started=False))
    return job


def _admit_oldest(
    agent_id: int, gate: AgentGate, slots: SlotPair, now: datetime, worker_id: int | None
) -> Job | None:
    row = fetch_one(statements.ADMIT_OLDEST, [agent_id, to_database_time(now)])
    if row is None:
        return None
    return _insert_run(_as_defined(Job(*row), gate), slots, now, worker_id)


def admit_called_work(work_item_id: int, gate: AgentGate, loan: Loan, now: datetime) -> Job | None:
    """Admit a called work item to a slot that its waiting callers lend."""
    row = fetch_one(statements.ADMIT_CALLED, [work_item_id])
    if row is None:
        return None
    loans.take_slots(loan)
    job = _insert_run(_as_defined(Job(*row), gate), loan.slots, now, None)
    loans.record_debt(job.run_id, loan)
    journal.record(run_entry("run.admitted", job, now, loan.detail))
    return job


def start_run(run_id: int, worker_id: int, now: datetime) -> Job | None:
    """Move a pending run to running, owned by the worker.

    None: the run is no longer pending, or the worker was declared dead and does not know it yet.
    """
    row = fetch_one(statements.PENDING, [run_id, worker_id])
    if row is None:
        return None
    job = replace(Job(*row), secret=new_secret())
    columns = _start_columns(job, now) | {"worker_id": worker_id}
    if not _move_run(run_id, R.PENDING, R.RUNNING, columns):
        return None
    journal.record(run_entry("run.started", job, now))
    return job


def finish_run(
    job: Job, ending: Ending, now: datetime, worker_id: int, *, hand_over: bool
) -> Job | None:
    """End the run, settle its work item and fill its slot; locks the agent.

    Returns the next job of the slot, already started if `hand_over` gives it to the same worker.
    """
    if hand_over and (following := hand_over_in_one_statement(job, ending, now, worker_id)):
        return following
    gate = lock_agent(job.agent_id)
    held = _read_held_resources(job.run_id, job.tenant_id)
    ending = ending.after_signals(held.exit_signal, rerun_requested=held.rerun_requested)
    if gate is None or not _end(job, ending, now, worker_id):
        return None
    held.return_slots()
    following = _fill_slot(job, ending, gate, now, worker_id if hand_over else None)
    _release(held, now)
    entry = run_entry(f"run.{ending.state}", job, now, ending.error)
    journal.record(entry, *(start_entries(following, now, hand_over) if following else ()))
    return following


def hand_over_in_one_statement(
    job: Job, ending: Ending, now: datetime, worker_id: int
) -> Job | None:
    """Finish a successful run and start the next one in one statement without a transaction.

    None: the statement changed no row, and `finish_run` continues with separate statements.
    """
    if ending.state != R.SUCCEEDED or ending.wants_rerun or job.schedule_id:
        return None
    following = handover.hand_over(job, ending, now, worker_id)
    if following is not None:
        entry = run_entry("run.succeeded", job, now)
        journal.log_after_commit(entry, *start_entries(following, now, started=True))
    return following


def _fill_slot(
    job: Job, ending: Ending, gate: AgentGate, now: datetime, worker_id: int | None
) -> Job | None:
    """Fill the slot that has just become free: by a rerun, or by the oldest work item."""
    slots = None if gate.blocked_reason else find_free_slots(job.agent_id, gate)
    if slots and _may_rerun(job, ending, gate):
        rerun = replace(_as_defined(job, gate), rerun=job.rerun + 1)
        return _insert_run(rerun, slots, now, worker_id)
    _settle(job, ending, gate, now)
    # Under a project's cap the oldest work item of all its agents is next, not this agent's.
    if slots is None or gate.tenant_scale is not None:
        return None
    return _admit_oldest(job.agent_id, gate, slots, now, worker_id)


def stop_pending_run(
    run: Run, now: datetime, reason: str, work: str = W.FAILED, by: str = ""
) -> bool:
    """End a run that no worker has started; its agent has to be locked."""
    held = _read_held_resources(run.pk, run.tenant_id)
    if not _move_run(run.pk, R.PENDING, R.STOPPED, _end_columns(now, reason)):
        return False
    held.return_slots()
    _settle_work(run.work_item_id, work, now, reason)
    if work == W.FAILED:
        settle_schedule(run.schedule_id, now, reason, stopped=True)
    journal.record(run_entry("run.stopped", run, now, reason, by))
    return True


def lose_run(run: Run, now: datetime, reason: str) -> bool:
    """End a run whose worker and processes are dead; `on_lost` decides about its work item.

    Locks the agent, as every end of a run does.
    """
    lock_agent(run.agent_id)
    held = _read_held_resources(run.pk, run.tenant_id)
    poison = _count_losses(run.work_item_id, now) >= MOST_LOSSES
    state = R.DEAD if poison else R.LOST
    if not _move_run(run.pk, run.state, state, _end_columns(now, reason)):
        return False
    held.return_slots()
    _release(held, now)
    journal.record(run_entry(f"run.{state}", run, now, reason))
    if run.agent.on_lost == "retry" and not poison:
        _move_work(run.work_item_id, W.ADMITTED, W.QUEUED, {"available_at": to_database_time(now)})
    else:
        _settle_work(run.work_item_id, W.FAILED, now, reason)
        settle_schedule(run.schedule_id, now, reason)
    return True


def give_back_run(job: Job, ending: Ending, now: datetime, worker_id: int) -> None:
    """Return the work item of a run that could not begin to its queue; no attempt is counted.

    Locks the agent.
    """
    lock_agent(job.agent_id)
    held = _read_held_resources(job.run_id, job.tenant_id)
    if not _end(job, replace(ending, state=R.STOPPED), now, worker_id):
        return
    held.return_slots()
    _release(held, now)
    later = to_database_time(now + timedelta(seconds=GIVEN_BACK_SECONDS))
    _count_runs(job, -1, now)
    columns = {"available_at": later, "attempts": job.attempt - 1, "reason": ending.error[:200]}
    _move_work(job.work_item_id, W.ADMITTED, W.QUEUED, columns)
    journal.record(run_entry("run.given_back", job, now, ending.error))


def end_calls(caller_run_id: int, now: datetime, reason: str) -> int:
    """End the calls of an ended run: queued work items are dropped, runs continue."""
    calls = execute(statements.END_CALLS, [to_database_time(now), reason, caller_run_id]).rowcount
    # A work item that is locked is being admitted: to wait for it here could be a deadlock.
    for work_item_id in fetch_column(statements.LOCK_WORK_OF_ENDED_CALLS, [caller_run_id]):
        drop_work(work_item_id, now, reason)
    return int(calls)


def _release(held: HeldResources, now: datetime) -> None:
    """Release the locks of an ended run and end its calls."""
    if held.signaled:
        execute(statements.RELEASE_LOCKS, [held.run_id])
        execute(statements.DELETE_LOCK_WAITS, [held.run_id])
        end_calls(held.run_id, now, CALLER_FINISHED)


# --- work items -----------------------------------------------------------------------------


def drop_work(work_item_id: int, now: datetime, reason: str) -> bool:
    columns = {"reason": reason, "finished_at": to_database_time(now)}
    dropped = _move_work(work_item_id, W.QUEUED, W.DROPPED, columns)
    if dropped and (row := fetch_one(statements.SCHEDULE_OF, [work_item_id])):
        end_one_shot(row[0], now, "failed", f"dropped: {reason}")
    return dropped


def clear_work(work_item_id: int, now: datetime, reason: str) -> bool:
    columns = {"reason": reason, "finished_at": to_database_time(now)}
    return _move_work(work_item_id, W.QUEUED, W.CLEARED, columns)


def restore_work(work_item_id: int, was: str, now: datetime) -> bool:
    columns = {"reason": "", "finished_at": None, "available_at": to_database_time(now)}
    return _move_work(work_item_id, was, W.QUEUED, columns)


def retry_delay_seconds(attempt: int) -> int:
    """10 s, 20 s, 40 s and so on, at most an hour."""
    return min(FIRST_RETRY_SECONDS << min(attempt - 1, 20), LONGEST_RETRY_SECONDS)


# --- the row of a run -----------------------------------------------------------------------

_NOT_STARTED = {"started_at": None, "deadline_at": None, "token_sha256": ""}


def _insert_run(job: Job, slots: SlotPair, now: datetime, worker_id: int | None) -> Job:
    """Insert a run into free slots; unique indexes guarantee that they are free."""
    started = worker_id is not None
    job = replace(job, secret=new_secret()) if started else job
    begin = _start_columns(job, now) if started else _NOT_STARTED
    hinted_at = None if started else to_database_time(now)
    state = R.RUNNING if started else R.PENDING
    values = [
        *(job.tenant_id, job.agent_id, job.work_item_id, job.schedule_id, str(state)),
        *(job.trigger, job.requested_by, slots.slot, slots.project_slot, job.attempt, job.rerun),
        *(worker_id, to_database_time(now), hinted_at, begin["started_at"], begin["deadline_at"]),
        *(job.trace_id, job.depth, job.parent_run_id, begin["token_sha256"]),
    ]
    row = fetch_one(statements.INSERT_RUN, values)
    assert row is not None
    _count_runs(job, 1, now)
    return replace(job, run_id=row[0])


def _start_columns(job: Job, now: datetime) -> dict[str, Any]:
    deadline_at = now + timedelta(seconds=job.timeout_seconds)
    return {
        "started_at": to_database_time(now),
        "deadline_at": to_database_time(deadline_at),
        "token_sha256": job.secret_sha256,
    }


def _end_columns(now: datetime, error: str) -> dict[str, Any]:
    # An ended run holds no slot.
    columns: dict[str, Any] = {"slot": None, "project_slot": None}
    return columns | {"finished_at": to_database_time(now), "error": error}


def _count_runs(job: Job, change: int, now: datetime) -> None:
    if job.schedule_id is not None:
        execute(statements.COUNT_RUNS, [change, to_database_time(now), job.schedule_id])


# --- parts ----------------------------------------------------------------------------------


def _may_rerun(job: Job, ending: Ending, gate: AgentGate) -> bool:
    return ending.wants_rerun and job.trigger == Trigger.SCHEDULE and job.rerun < gate.max_reruns


def _as_defined(job: Job, gate: AgentGate) -> Job:
    return replace(
        job, revision=gate.revision, timeout_seconds=gate.timeout_seconds, agent=gate.name
    )


def _settle(job: Job, ending: Ending, gate: AgentGate, now: datetime) -> None:
    failed = ending.state in {R.FAILED, R.TIMED_OUT}
    if failed and job.attempt <= gate.retries_after(ending.error):
        later = now + timedelta(seconds=retry_delay_seconds(job.attempt))
        columns = {"available_at": to_database_time(later)}
        _move_work(job.work_item_id, W.ADMITTED, W.QUEUED, columns)
        return
    state = W.DONE if ending.state == R.SUCCEEDED else W.FAILED
    _settle_work(job.work_item_id, state, now, ending.error)
    error = "" if state == W.DONE else ending.error or ending.state
    settle_schedule(job.schedule_id, now, error, stopped=ending.state == R.STOPPED)


def _settle_work(work_item_id: int, state: str, now: datetime, reason: str) -> None:
    columns = {"reason": reason[:200], "finished_at": to_database_time(now)}
    _move_work(work_item_id, W.ADMITTED, state, columns)


def _end(job: Job, ending: Ending, now: datetime, worker_id: int) -> bool:
    """False: this worker no longer owns the run, and its report is discarded."""
    reported = ("exit_code", "pid", "sandbox", "output_bytes", "output_cut_bytes")
    columns = _end_columns(now, ending.error) | {name: getattr(ending, name) for name in reported}
    return _move_run(job.run_id, R.RUNNING, ending.state, columns, worker_id)


def _count_losses(work_item_id: int, now: datetime) -> int:
    recent = Run.objects.filter(work_item=work_item_id, finished_at__gt=now - LOSS_WINDOW)
    return recent.filter(state=R.LOST).count()


def _move_run(
    run_id: int, old: str, new: str, columns: dict[str, Any], owner: int | None = None
) -> bool:
    assert new in RUN_MOVES[old], f"a run never goes from {old} to {new}"
    return move_state("drover_run", run_id, old, new, columns, owner)


def _move_work(work_item_id: int, old: str, new: str, columns: dict[str, Any]) -> bool:
    assert new in WORK_MOVES[old], f"a work item never goes from {old} to {new}"
    return move_state("drover_work_item", work_item_id, old, new, columns)
