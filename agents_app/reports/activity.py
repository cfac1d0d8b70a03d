"""Counts of recent runs and firings in equal intervals of time; reads only.

The database counts at most MOST_ROWS rows, the latest ones.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from agents_app.database import ENGINE, from_database_time, to_database_time

MOST_ROWS = 20_000
MOST_LATEST = 2_000


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs of one agent that ended in the same state within one interval."""

    agent_id: int
    state: str
    count: int
    began_at: datetime
    ended_at: datetime
    # The latest of the runs, and the longest wait of one of them for a worker.
    run_id: int
    waited_seconds: float


@dataclass(frozen=True, slots=True)
class Lateness:
    """The greatest delay of the firings that were recorded within one interval."""

    at: datetime
    seconds: float
    count: int


def group_ended_runs(
    since: datetime, interval_seconds: float, tenant_id: int | None = None
) -> list[RunGroup]:
    """The runs of all tenants without a tenant."""
    rows = _rows_of(_ENDED, tenant_id, since, interval_seconds)
    return [
        RunGroup(
            agent_id,
            state,
            count,
            from_database_time(began),
            from_database_time(ended),
            run_id,
            _positive(waited),
        )
        for agent_id, state, count, began, ended, run_id, waited in rows
    ]


def measure_firing_lateness(
    since: datetime, interval_seconds: float, tenant_id: int | None = None
) -> list[Lateness]:
    """The firings of all tenants without a tenant."""
    rows = _rows_of(_LATENESS, tenant_id, since, interval_seconds)
    return [Lateness(from_database_time(at), _positive(late), count) for at, late, count in rows]


def read_latest_triggers() -> dict[int, set[str]]:
    """The triggers of the latest runs, by agent."""
    triggers: dict[int, set[str]] = {}
    for agent_id, trigger in _rows(_TRIGGERS, [MOST_LATEST]):
        triggers.setdefault(agent_id, set()).add(trigger)
    return triggers


def _positive(seconds: Any) -> float:
    """NULL and negative values, after a change of the clock, become 0."""
    return max(0.0, float(seconds or 0))


# --- the statements -------------------------------------------------------------------------


_ENDED = f"""
SELECT agent_id, state, count(*), min(coalesce(started_at, created_at)), max(finished_at), max(id),
    max({ENGINE.seconds_between("created_at", "started_at")})
FROM (
    SELECT id, agent_id, state, created_at, started_at, finished_at FROM drover_run
    WHERE finished_at >= %s{{of_tenant}} ORDER BY finished_at DESC LIMIT %s
) AS recent
GROUP BY agent_id, state, {ENGINE.time_bucket("finished_at")}
ORDER BY max(finished_at), max(id)"""  # noqa: S608
_LATENESS = f"""
SELECT max(recorded_at), max({ENGINE.seconds_between("due_at", "recorded_at")}), count(*)
FROM (
    SELECT due_at, recorded_at FROM drover_firing
    WHERE recorded_at >= %s{{of_tenant}} ORDER BY recorded_at DESC LIMIT %s
) AS recent
GROUP BY {ENGINE.time_bucket("recorded_at")}
ORDER BY max(recorded_at)"""  # noqa: S608
_TRIGGERS = """
SELECT DISTINCT agent_id, recent.trigger
FROM (SELECT agent_id, drover_run.trigger FROM drover_run ORDER BY id DESC LIMIT %s) AS recent"""


def _rows_of(
    sql: str, tenant_id: int | None, since: datetime, interval_seconds: float
) -> list[Any]:
    """The statement over the rows of one tenant, or of all."""
    one = [] if tenant_id is None else [tenant_id]
    values = [to_database_time(since), *one, MOST_ROWS, interval_seconds]
    return _rows(sql.format(of_tenant=" AND tenant_id = %s" if one else ""), values)


def _rows(sql: str, values: list[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
