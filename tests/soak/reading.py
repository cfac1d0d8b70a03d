"""Reads the rows of a soaked stack into the comparisons of its report."""

import json
from collections import Counter
from contextlib import suppress
from datetime import datetime

from tests.faults.hooks import stored, worked
from tests.faults.real_fleet import RealFleet, moment
from tests.parts.waiting import wait_for
from tests.soak.fleet import MINUTELY
from tests.soak.load import Load
from tests.soak.report import Comparison, compare, whole_minutes

SETTLE_SECONDS = 60.0
_OPEN = """
SELECT a.name, w.state, count(*) AS n FROM drover_work_item w
JOIN drover_agent a ON a.id = w.agent_id WHERE w.state IN ('queued', 'admitted')
GROUP BY a.name, w.state"""
_MINUTES = """
SELECT f.due_at FROM drover_firing f JOIN drover_schedule s ON s.id = f.schedule_id
JOIN drover_agent a ON a.id = s.agent_id WHERE a.name = ?"""
_CREATED = """
SELECT s.created_at FROM drover_schedule s JOIN drover_agent a ON a.id = s.agent_id
WHERE a.name = ?"""
_SUCCESSES = """
SELECT work_item_id, count(*) AS n FROM drover_run WHERE state = 'succeeded' AND rerun = 0
GROUP BY work_item_id"""


def pause_schedules(fleet: RealFleet) -> None:
    for row in fleet.stack.rows("SELECT id FROM drover_schedule WHERE state = 'active'"):
        done = fleet.stack.manage("schedule", "pause", str(row["id"]))
        assert done.returncode == 0, done.stderr


def unsettled_work(fleet: RealFleet) -> list[str]:
    """Work that has not ended after a while without new work and without kills."""
    with suppress(AssertionError):
        wait_for(lambda: not fleet.stack.rows(_OPEN), SETTLE_SECONDS)
    return [f"{row['name']}: {row['n']} {row['state']}" for row in fleet.stack.rows(_OPEN)]


def runs_by_state(fleet: RealFleet) -> dict[str, int]:
    rows = fleet.stack.rows("SELECT state, count(*) AS n FROM drover_run GROUP BY state")
    return {row["state"]: row["n"] for row in rows}


def read_comparisons(fleet: RealFleet, load: Load, until: datetime) -> list[Comparison]:
    return [
        compare("deliveries", load.deliveries, stored(fleet)),
        compare("work of deliveries", stored(fleet), worked(fleet)),
        compare("manual runs", load.requests, _requested(fleet)),
        compare("instants of the cron schedule", _due(fleet, until), _fired(fleet)),
        compare("work done", (), _successes(fleet)),
        compare("executions of runs", (), _executions(fleet)),
    ]


def overlaps(fleet: RealFleet) -> list[str]:
    """Runs that found another live run of their agent, as they noted themselves."""
    return [
        f"{agent}, run {note.run_id}"
        for agent in _agents(fleet)
        for note in fleet.notes(agent, "overlap")
    ]


def violations(fleet: RealFleet) -> list[str]:
    done = fleet.stack.manage("doctor", "--invariants", "--json", seconds=120)
    findings = json.loads(done.stdout)["findings"]
    checked = [each for each in findings if each["check"] == "invariants"]
    assert checked, done.stdout
    return [each["detail"] for each in checked if each["verdict"] != "ok"]


def _requested(fleet: RealFleet) -> Counter[str]:
    sql = "SELECT idempotency_key FROM drover_work_item WHERE idempotency_key LIKE ?"
    rows = fleet.stack.rows(sql, "api:%")
    return Counter(row["idempotency_key"].removeprefix("api:") for row in rows)


def _due(fleet: RealFleet, until: datetime) -> list[str]:
    (row,) = fleet.stack.rows(_CREATED, MINUTELY)
    return [str(instant) for instant in whole_minutes(moment(row["created_at"]), until)]


def _fired(fleet: RealFleet) -> Counter[str]:
    return Counter(str(moment(row["due_at"])) for row in fleet.stack.rows(_MINUTES, MINUTELY))


def has_fired(fleet: RealFleet, instant: datetime) -> bool:
    """Whether the cron schedule fired at the instant, or was created after it."""
    return str(instant) not in set(_due(fleet, instant)) - _fired(fleet).keys()


def _successes(fleet: RealFleet) -> Counter[str]:
    return Counter({str(row["work_item_id"]): row["n"] for row in fleet.stack.rows(_SUCCESSES)})


def _executions(fleet: RealFleet) -> Counter[str]:
    """How often the program of each run was started, as the programs noted."""
    notes = (note for agent in _agents(fleet) for note in fleet.notes(agent, "start"))
    return Counter(str(note.run_id) for note in notes)


def _agents(fleet: RealFleet) -> list[str]:
    return [row["name"] for row in fleet.stack.rows("SELECT name FROM drover_agent")]
