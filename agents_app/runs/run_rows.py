"""What stands in the row of a run when it begins and when it ends; lifecycle.py decides when."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from agents_app.database import fetch_one, to_database_time
from agents_app.models import Run
from agents_app.runs.job import Job, new_secret
from agents_app.runs.slots import SlotPair
from agents_app.runs.statements import INSERT_RUN

_NOT_BEGUN = {"started_at": None, "deadline_at": None, "token_sha256": ""}


def insert_run(job: Job, place: SlotPair, now: datetime, worker_id: int | None) -> Job:
    """A run begins to exist by taking a place: the unique index on it has the last word."""
    started = worker_id is not None
    job = replace(job, secret=new_secret()) if started else job
    begin = beginning(job, now) if started else _NOT_BEGUN
    hinted_at = None if started else to_database_time(now)
    state = Run.State.RUNNING if started else Run.State.PENDING
    values: list[Any] = [job.tenant_id, job.agent_id, job.work_item_id, job.schedule_id]
    values += [
        str(state),
        job.trigger,
        job.requested_by,
    ]
    values += [place.slot, place.project_slot, job.attempt, job.rerun, worker_id]
    values += [
        to_database_time(now),
        hinted_at,
        begin["started_at"],
        begin["deadline_at"],
        job.trace_id,
    ]
    values += [job.depth, job.parent_run_id, begin["token_sha256"]]
    row = fetch_one(INSERT_RUN, values)
    assert row is not None
    return replace(job, run_id=row[0])


def beginning(job: Job, now: datetime) -> dict[str, Any]:
    deadline_at = now + timedelta(seconds=job.timeout_seconds)
    return {
        "started_at": to_database_time(now),
        "deadline_at": to_database_time(deadline_at),
        "token_sha256": job.secret_sha256,
    }


def ended(now: datetime, error: str) -> dict[str, Any]:
    # Ending a run and giving its place back are the same act.
    return {
        "finished_at": to_database_time(now),
        "error": error,
        "slot": None,
        "project_slot": None,
    }
