"""Every change of state of a run or a work item, and nothing else; schedules' are beside it.

    work item   queued --> admitted --> done | failed
                   |          `-------> queued        (retry, on_lost: retry, or given back)
                   `--> dropped | cleared --> queued  (restore; cleared from admitted, too)
    run         pending --> running --> succeeded | failed | timed_out | stopped | lost | dead
                   `------------------> stopped | lost | dead

A move is one conditional update that names the old state. Moving no row is a normal answer:
somebody else was first. The functions here run inside a transaction that their caller opened.
Plain SQL, because this is the hot path: the ORM would halve the number of runs per second.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from agents_app.database import execute as execute
from agents_app.database import fetch_column, fetch_one, move_state, to_database_time
from agents_app.events import journal
from agents_app.models import Run, Trigger, WorkItem
from agents_app.runs import handover, loans
from agents_app.runs.held_resources import HeldResources, as_signaled, read_held_resources
from agents_app.runs.job import Ending, Job, new_secret
from agents_app.runs.loans import Loan
from agents_app.runs.run_rows import beginning, ended, insert_run
from agents_app.runs.schedule_states import end_one_shot, settle_schedule
from agents_app.runs.slots import AgentGate, SlotPair, find_free_slots, lock_agent
from agents_app.runs.statements import (
    ADMIT_CALLED,
    ADMIT_OLDEST,
    END_CALLS,
    LOCK_WORK_OF_ENDED_CALLS,
    PENDING,
    SCHEDULE_OF,
)

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
CALLER_GONE = "the caller had already finished"
MOST_LOSSES = 3
LOSS_WINDOW = timedelta(hours=72)
GIVEN_BACK_SECONDS = 1  # then the next sweep tries again
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 10, 3600


# --- runs -----------------------------------------------------------------------------------


def admit_next(agent_id: int, gate: AgentGate, place: SlotPair, now: datetime) -> Job | None:
    """The oldest waiting work of the agent takes the place; a hint will find it a worker."""
    job = _admit_oldest(agent_id, gate, place, now, None)
    if job is not None:
        journal.record(*_begun(job, now, started=False))
    return job


def _admit_oldest(
    agent_id: int, gate: AgentGate, place: SlotPair, now: datetime, worker_id: int | None
) -> Job | None:
    row = fetch_one(ADMIT_OLDEST, [agent_id, to_database_time(now)])
    if row is None:
        return None
    return insert_run(_as_defined(Job(*row), gate), place, now, worker_id)


def admit_on_loan(work_item_id: int, gate: AgentGate, loan: Loan, now: datetime) -> Job | None:
    """Work that was called takes a place that runs which wait for it have lent."""
    row = fetch_one(ADMIT_CALLED, [work_item_id])
    if row is None:
        return None
    loans.lend(loan)
    job = insert_run(_as_defined(Job(*row), gate), loan.place, now, None)
    loans.record_debt(job.run_id, loan)
    journal.record(_entry("run.admitted", job, now, loan.detail))
    return job


def start(run_id: int, worker_id: int, now: datetime) -> Job | None:
    row = fetch_one(PENDING, [run_id])
    if row is None:
        return None
    job = replace(Job(*row), secret=new_secret())
    if not _move_run(run_id, R.PENDING, R.RUNNING, beginning(job, now) | {"worker_id": worker_id}):
        return None
    journal.record(_entry("run.started", job, now))
    return job


def finish(
    job: Job, ending: Ending, now: datetime, worker_id: int, *, hand_over: bool
) -> Job | None:
    """End the run, settle its work and fill its place, all or nothing.

    What waits next is returned, already started if it is handed over to the same worker.
    """
    if hand_over and (following := hand_over_at_once(job, ending, now, worker_id)):
        return following
    gate = lock_agent(job.agent_id)
    ties = read_held_resources(job.run_id, job.tenant_id)
    ending = as_signaled(ties, ending)
    if gate is None or not _end(job, ending, now, worker_id):
        return None
    ties.return_slots()
    following = _follow(job, ending, gate, now, worker_id if hand_over else None)
    _let_go(ties, now)
    told = _entry(f"run.{ending.state}", job, now, ending.error)
    journal.record(told, *(_begun(following, now, hand_over) if following else ()))
    return following


def hand_over_at_once(job: Job, ending: Ending, now: datetime, worker_id: int) -> Job | None:
    """The end that most runs of a busy agent have, in one statement that needs no transaction
    around it; None: nothing has happened, and `finish` goes the long way."""
    if ending.state != R.SUCCEEDED or ending.wants_rerun or job.schedule_id:
        return None
    following = handover.hand_over(job, ending, now, worker_id)
    if following is not None:
        told = _entry("run.succeeded", job, now)
        journal.log_after_commit(told, *_begun(following, now, started=True))
    return following


def _follow(
    job: Job, ending: Ending, gate: AgentGate, now: datetime, worker_id: int | None
) -> Job | None:
    """What takes the place that has just become free."""
    place = None if gate.blocked_reason else find_free_slots(job.agent_id, gate)
    if place and _may_rerun(job, ending, gate):
        again = replace(_as_defined(job, gate), rerun=job.rerun + 1)
        return insert_run(again, place, now, worker_id)
    _settle(job, ending, gate, now)
    # Under a project's cap the oldest work of all its agents is next, not this agent's.
    if place is None or gate.tenant_scale is not None:
        return None
    return _admit_oldest(job.agent_id, gate, place, now, worker_id)


def stop_pending(run: Run, now: datetime, reason: str, work: str = W.FAILED) -> bool:
    """A run that no worker has started ends on the spot."""
    ties = read_held_resources(run.pk, run.tenant_id)
    if not _move_run(run.pk, R.PENDING, R.STOPPED, ended(now, reason)):
        return False
    ties.return_slots()
    _settle_work(run.work_item_id, work, now, reason)
    if work == W.FAILED:
        settle_schedule(run.schedule_id, now, reason, stopped=True)
    journal.record(_entry("run.stopped", run, now, reason))
    return True


def lose(run: Run, now: datetime, reason: str) -> bool:
    """Its worker is gone and its processes are dead; `on_lost` says what becomes of the work."""
    # As every end of a run: what is decided about the agent at this moment goes before or after.
    lock_agent(run.agent_id)
    ties = read_held_resources(run.pk, run.tenant_id)
    poison = _losses(run.work_item_id, now) >= MOST_LOSSES
    state = R.DEAD if poison else R.LOST
    if not _move_run(run.pk, run.state, state, ended(now, reason)):
        return False
    ties.return_slots()
    _let_go(ties, now)
    journal.record(_entry(f"run.{state}", run, now, reason))
    if run.agent.on_lost == "retry" and not poison:
        _move_work(run.work_item_id, W.ADMITTED, W.QUEUED, {"available_at": to_database_time(now)})
    else:
        _settle_work(run.work_item_id, W.FAILED, now, reason)
        settle_schedule(run.schedule_id, now, reason)
    return True


def give_back(job: Job, ending: Ending, now: datetime, worker_id: int) -> None:
    """Nothing of it was done, because what it runs in is away: the work waits, no attempt less."""
    lock_agent(job.agent_id)
    ties = read_held_resources(job.run_id, job.tenant_id)
    if not _end(job, replace(ending, state=R.STOPPED), now, worker_id):
        return
    ties.return_slots()
    _let_go(ties, now)
    later = to_database_time(now + timedelta(seconds=GIVEN_BACK_SECONDS))
    waits = {"available_at": later, "attempts": job.attempt - 1, "reason": ending.error[:200]}
    _move_work(job.work_item_id, W.ADMITTED, W.QUEUED, waits)
    journal.record(_entry("run.given_back", job, now, ending.error))


def end_calls(caller_run_id: int, now: datetime, reason: str) -> int:
    """Nobody hears the answers any more: what still waits is dropped, what runs goes on."""
    calls = execute(END_CALLS, [to_database_time(now), reason, caller_run_id]).rowcount
    # One that is being admitted at this moment runs: to wait for it here could be a deadlock.
    for work_item_id in fetch_column(LOCK_WORK_OF_ENDED_CALLS, [caller_run_id]):
        drop(work_item_id, now, reason)
    return int(calls)


def _let_go(ties: HeldResources, now: datetime) -> None:
    if ties.signaled:
        ties.release_locks()
        end_calls(ties.run_id, now, CALLER_GONE)


# --- work items -----------------------------------------------------------------------------


def drop(work_item_id: int, now: datetime, reason: str) -> bool:
    columns = {"reason": reason, "finished_at": to_database_time(now)}
    dropped = _move_work(work_item_id, W.QUEUED, W.DROPPED, columns)
    if dropped and (row := fetch_one(SCHEDULE_OF, [work_item_id])):
        end_one_shot(row[0], "failed", f"dropped: {reason}")
    return dropped


def clear(work_item_id: int, now: datetime, reason: str) -> bool:
    columns = {"reason": reason, "finished_at": to_database_time(now)}
    return _move_work(work_item_id, W.QUEUED, W.CLEARED, columns)


def restore(work_item_id: int, was: str, now: datetime) -> bool:
    columns = {"reason": "", "finished_at": None, "available_at": to_database_time(now)}
    return _move_work(work_item_id, was, W.QUEUED, columns)


def retry_delay_seconds(attempt: int) -> int:
    """10 s, 20 s, 40 s ... an hour."""
    return min(FIRST_RETRY_SECONDS << min(attempt - 1, 20), LONGEST_RETRY_SECONDS)


# --- the parts ------------------------------------------------------------------------------


def _may_rerun(job: Job, ending: Ending, gate: AgentGate) -> bool:
    return ending.wants_rerun and job.trigger == Trigger.SCHEDULE and job.rerun < gate.max_reruns


def _as_defined(job: Job, gate: AgentGate) -> Job:
    return replace(job, revision=gate.revision, timeout_seconds=gate.timeout_seconds)


def _settle(job: Job, ending: Ending, gate: AgentGate, now: datetime) -> None:
    failed = ending.state in {R.FAILED, R.TIMED_OUT}
    if failed and job.attempt <= gate.retries:
        later = now + timedelta(seconds=retry_delay_seconds(job.attempt))
        _move_work(
            job.work_item_id, W.ADMITTED, W.QUEUED, {"available_at": to_database_time(later)}
        )
        return
    state = W.DONE if ending.state == R.SUCCEEDED else W.FAILED
    _settle_work(job.work_item_id, state, now, ending.error)
    error = "" if state == W.DONE else ending.error or ending.state
    settle_schedule(job.schedule_id, now, error, stopped=ending.state == R.STOPPED)


def _settle_work(work_item_id: int, state: str, now: datetime, reason: str) -> None:
    columns = {"reason": reason[:200], "finished_at": to_database_time(now)}
    _move_work(work_item_id, W.ADMITTED, state, columns)


def _end(job: Job, ending: Ending, now: datetime, worker_id: int) -> bool:
    """False: this worker no longer owns the run, and nothing it knows of it counts."""
    columns = ended(now, ending.error) | {
        "exit_code": ending.exit_code,
        "pid": ending.pid,
        "output_bytes": ending.output_bytes,
        "output_cut_bytes": ending.output_cut_bytes,
    }
    return _move_run(job.run_id, R.RUNNING, ending.state, columns, worker_id)


def _begun(job: Job, now: datetime, started: bool) -> list[journal.JournalEntry]:
    names = ["run.admitted", "run.started"] if started else ["run.admitted"]
    return [_entry(name, job, now) for name in names]


def _losses(work_item_id: int, now: datetime) -> int:
    recent = Run.objects.filter(work_item=work_item_id, finished_at__gt=now - LOSS_WINDOW)
    return recent.filter(state=R.LOST).count()


def _entry(name: str, run: Job | Run, now: datetime, detail: str = "") -> journal.JournalEntry:
    run_id = run.run_id if isinstance(run, Job) else run.pk
    return journal.JournalEntry(
        name, now, run.tenant_id, run.agent_id, run_id, detail, run.trace_id
    )


def _move_run(
    run_id: int, old: str, new: str, columns: dict[str, Any], owner: int | None = None
) -> bool:
    assert new in RUN_MOVES[old], f"a run never goes from {old} to {new}"
    return move_state("drover_run", run_id, old, new, columns, owner)


def _move_work(work_item_id: int, old: str, new: str, columns: dict[str, Any]) -> bool:
    assert new in WORK_MOVES[old], f"a work item never goes from {old} to {new}"
    return move_state("drover_work_item", work_item_id, old, new, columns)
