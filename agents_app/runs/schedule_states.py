"""Every change of state of a schedule; lifecycle.py has the runs and work items.

    active <--> paused              a person, a missing agent, too many failures, the end of a pause
    active | paused | failed --> completed | failed     a one-shot, by the end of its work
    any --> canceled
    completed | failed | canceled --> active            retry, or the agent's file

A move names the old state and runs in the caller's transaction.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from agents_app.database import ENGINE, execute, fetch_one, move_state, to_database_time
from agents_app.models import Schedule

S = Schedule.State
SCHEDULE_MOVES: Mapping[str, frozenset[str]] = {
    S.ACTIVE: frozenset({S.ACTIVE, S.PAUSED, S.COMPLETED, S.FAILED, S.CANCELED}),
    S.PAUSED: frozenset({S.ACTIVE, S.COMPLETED, S.FAILED, S.CANCELED}),
    S.COMPLETED: frozenset({S.ACTIVE, S.CANCELED}),
    S.FAILED: frozenset({S.ACTIVE, S.COMPLETED, S.FAILED, S.CANCELED}),
    S.CANCELED: frozenset({S.ACTIVE}),
}

# The work of a one-shot may end after a person paused the schedule, or be restored after it failed.
MAY_END = frozenset({S.ACTIVE, S.PAUSED, S.FAILED})

_SCHEDULE = """
SELECT state, one_shot, next_fire_at IS NOT NULL, interval_seconds, pause_after_failures,
    failure_count
FROM drover_schedule WHERE id = %s"""
_LOCK_SCHEDULE = _SCHEDULE + ENGINE.row_lock()
_SET_LAST_ERROR = "UPDATE drover_schedule SET last_error = %s, updated_at = %s WHERE id = %s"


def pause_schedule(
    schedule_id: int, now: datetime, note: str, until: datetime | None = None
) -> bool:
    columns = {"pause_note": note[:500], "pause_until": until and to_database_time(until)}
    return _move_schedule(schedule_id, now, S.ACTIVE, S.PAUSED, columns)


def resume_schedule(
    schedule_id: int, now: datetime, was: str, next_fire_at: datetime | None
) -> bool:
    columns = {
        "pause_note": "",
        "pause_until": None,
        "failure_count": 0,
        "next_fire_at": next_fire_at and to_database_time(next_fire_at),
    }
    return _move_schedule(schedule_id, now, was, S.ACTIVE, columns)


def cancel_schedule(schedule_id: int, now: datetime, was: str) -> bool:
    columns = {"next_fire_at": None, "pause_until": None}
    return was != S.CANCELED and _move_schedule(schedule_id, now, was, S.CANCELED, columns)


def end_one_shot(schedule_id: int, now: datetime, state: str, note: str) -> bool:
    """End a one-shot whose firing was skipped or whose work failed.

    Does nothing if the schedule has a next fire time.
    """
    row = _lock_schedule(schedule_id)
    if row is None:
        return False
    was, one_shot, armed, *_ = row
    if armed or not one_shot or was not in MAY_END:
        return False
    columns = {"pause_note": note[:500], "pause_until": None}
    if state == S.FAILED:
        columns["last_error"] = note[:500]
    return _move_schedule(schedule_id, now, was, state, columns)


def settle_schedule(
    schedule_id: int | None, now: datetime, error: str, *, stopped: bool = False
) -> None:
    """Update a schedule after the end of its work; an empty error means success.

    Work that was stopped counts neither as a failure nor as a success.
    """
    row = _lock_schedule(schedule_id) if schedule_id is not None else None
    if schedule_id is None or row is None:
        return
    was, one_shot, armed, interval_seconds, most_failures, failures = row
    # A one-shot whose time was edited since it fired has a next fire time: it does not end.
    over = one_shot and not armed
    if was not in (MAY_END if over else {S.ACTIVE}):
        if not stopped:
            execute(_SET_LAST_ERROR, [error[:500], to_database_time(now), schedule_id])
        return
    failures = failures + (not stopped) if error else 0
    columns = {"last_completed_at": to_database_time(now), "failure_count": failures}
    if not stopped:
        columns["last_error"] = error[:500]
    state: str = S.ACTIVE
    if over:
        state = S.FAILED if error else S.COMPLETED
        columns |= {"pause_note": error[:500], "pause_until": None}
    elif most_failures and failures >= most_failures:
        state = S.PAUSED
        columns["pause_note"] = f"paused after {failures} failures: {error}"[:500]
    elif interval_seconds is not None:
        # The interval is counted from the end of a run.
        columns["next_fire_at"] = to_database_time(now + timedelta(seconds=interval_seconds))
    _move_schedule(schedule_id, now, was, state, columns)


def _lock_schedule(schedule_id: int) -> tuple[Any, ...] | None:
    """Lock and read the schedule, so that a pause at the same time cannot make the move fail."""
    return fetch_one(_LOCK_SCHEDULE, [schedule_id])


def _move_schedule(
    schedule_id: int, now: datetime, old: str, new: str, columns: dict[str, Any]
) -> bool:
    assert new in SCHEDULE_MOVES[old], f"a schedule never goes from {old} to {new}"
    columns = {**columns, "updated_at": to_database_time(now)}
    return move_state("drover_schedule", schedule_id, old, new, columns)
