"""Beats that are killed, run in parallel, or were down: each instant fires once."""

import random
import sqlite3
import time
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.real_fleet import RealFleet, moment, seconds_ago, stamp
from tests.parts.stack_part import Row
from tests.parts.waiting import wait_for

FAR_AWAY = "0 0 1 1 *"
CROWD = [f"crowd-{number}" for number in range(40)]


@pytest.fixture(scope="module")
def fleet(new_fleet: NewFleet) -> RealFleet:
    fleet = new_fleet()
    every_ten = {"type": "cron", "expression": "*/10 * * * *"}
    fleet.agent("mid-claim", schedule=FAR_AWAY)
    fleet.agent("mid-decision", schedule=FAR_AWAY)
    fleet.agent("broken", schedule=FAR_AWAY)
    fleet.agent("missed", schedules={"ten": every_ten})
    for name in CROWD:
        far_away = {"type": "cron", "expression": FAR_AWAY, "overlap": "queue"}
        fleet.agent(name, scale=10, schedules={"main": far_away})
    fleet.sync()
    # Else a full ten minutes during the other tests of this file would be a firing.
    make_due(fleet, datetime.now(UTC) + timedelta(days=1), "missed")
    fleet.ensure("redis")
    return fleet


def make_due(fleet: RealFleet, due_at: datetime, *agents: str) -> None:
    """Set the next fire time of the schedules of the agents."""
    marks = ", ".join("?" * len(agents))
    fleet.stack.rows(
        "UPDATE drover_schedule SET next_fire_at = ? WHERE agent_id IN "
        f"(SELECT id FROM drover_agent WHERE name IN ({marks}))",
        stamp(due_at),
        *agents,
    )


def firings(fleet: RealFleet, agent: str) -> list[Row]:
    """The firings of the agent, oldest instant first; `%` in the name matches any text."""
    sql = (
        "SELECT f.*, a.name FROM drover_firing f "
        "JOIN drover_schedule s ON s.id = f.schedule_id "
        "JOIN drover_agent a ON a.id = s.agent_id WHERE a.name LIKE ? ORDER BY f.due_at"
    )
    return fleet.stack.rows(sql, agent)


def outcomes(fleet: RealFleet, agent: str) -> list[str]:
    return [firing["outcome"] for firing in firings(fleet, agent)]


def warnings_of(fleet: RealFleet, beats: list[str]) -> list[str]:
    """Log lines of the beats above INFO."""
    lines = [line for beat in beats for line in fleet.stack.log(beat).splitlines()]
    return [line for line in lines if '"level": "info"' not in line]


class SlowTable:
    """Transactions that write to the table take several seconds."""

    def __init__(self, fleet: RealFleet, table: str) -> None:
        self.stack = fleet.stack
        self.table = table
        self.on_postgres = not self.stack.database_url.startswith("sqlite")

    def __enter__(self) -> "SlowTable":
        if self.on_postgres:
            self.stack.rows(
                "CREATE OR REPLACE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN PERFORM pg_sleep(3); RETURN NEW; END $$"
            )
            what = "FOR EACH ROW EXECUTE FUNCTION dawdle()"
        else:
            what = (
                "BEGIN SELECT count(*) FROM (WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL "
                "SELECT x + 1 FROM n LIMIT 100000000) SELECT x FROM n); END"
            )
        self.stack.rows(f"CREATE TRIGGER slow BEFORE INSERT ON {self.table} {what}")
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.rows("DROP TRIGGER slow" + (f" ON {self.table}" if self.on_postgres else ""))

    def a_transaction_is_inside(self) -> bool:
        if self.on_postgres:
            return bool(
                self.stack.rows("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
            )
        path = self.stack.database_url.removeprefix("sqlite://")
        with closing(sqlite3.connect(path, timeout=0.2, isolation_level=None)) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            return False


@pytest.mark.fault("F5")
def test_a_beat_killed_during_the_claim_leaves_no_firing_and_the_next_beat_fires_once(
    fleet: RealFleet,
) -> None:
    """Guard: the firing and the next instant are written in one transaction. With
    separate transactions this instant would never fire."""
    fleet.ensure("beat")
    with SlowTable(fleet, "drover_firing") as table:
        make_due(fleet, datetime.now(UTC), "mid-claim")
        wait_for(table.a_transaction_is_inside, 10, "beat did not claim")
        fleet.stack.kill("beat")
        assert firings(fleet, "mid-claim") == []
    fleet.ensure("beat")
    wait_for(
        lambda: outcomes(fleet, "mid-claim") == ["started"], 10, lambda: fleet.stack.log("beat")
    )
    assert fleet.work("mid-claim") == ["admitted"]


@pytest.mark.fault("F5")
def test_a_firing_of_a_beat_killed_during_the_decision_is_decided_by_the_next_beat(
    fleet: RealFleet,
) -> None:
    """Guard: reconcile decides the firings that have no outcome. Without that the
    firing never gets an outcome, because no later claim selects it."""
    fleet.ensure("beat")
    with SlowTable(fleet, "drover_work_item") as table:
        make_due(fleet, datetime.now(UTC), "mid-decision")
        wait_for(lambda: outcomes(fleet, "mid-decision") == [""], 10, "beat did not claim")
        wait_for(table.a_transaction_is_inside, 10, "beat did not decide")
        fleet.stack.kill("beat")
    assert outcomes(fleet, "mid-decision") == [""]
    fleet.ensure("beat")
    wait_for(
        lambda: outcomes(fleet, "mid-decision") == ["started"], 10, lambda: fleet.stack.log("beat")
    )
    assert fleet.work("mid-decision") == ["admitted"]


@pytest.mark.fault("F7")
def test_after_an_hour_without_a_beat_the_last_instant_fires_and_the_rest_is_counted(
    fleet: RealFleet,
) -> None:
    """Guard: catch_up `last` within its window. With `all` there would be seven runs;
    without the count the six missed instants would be unknown."""
    fleet.ensure("beat")
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    hour_ago = now - timedelta(minutes=now.minute % 10, hours=1)
    make_due(fleet, hour_ago, "missed")
    wait_for(lambda: "started" in outcomes(fleet, "missed"), 10, lambda: fleet.stack.log("beat"))
    *missed, late = firings(fleet, "missed")
    until = moment(late["recorded_at"])
    due = [hour_ago + timedelta(minutes=10 * n) for n in range(8)]
    assert [moment(firing["due_at"]) for firing in (*missed, late)] == [
        d for d in due if d <= until
    ]
    assert {(firing["outcome"], firing["reason"]) for firing in missed} == {("skipped", "missed")}
    assert late["outcome"] == "started"
    assert fleet.work("missed") == ["admitted"]
    newest = fleet.stack.manage_json("schedule", "history", "ten")["firings"][0]
    scheduled_for = moment(newest["due_at"].removesuffix("Z"))
    assert (newest["outcome"], scheduled_for) == ("started", moment(late["due_at"]))
    assert newest["late_seconds"] == pytest.approx((until - scheduled_for).total_seconds(), abs=1)
    (schedule,) = fleet.stack.rows(
        "SELECT missed_count, fire_count, next_fire_at FROM drover_schedule WHERE name = 'ten'"
    )
    assert schedule["missed_count"] == len(missed) >= 6
    assert schedule["fire_count"] == 1
    assert moment(schedule["next_fire_at"]) > until


def test_an_unreadable_schedule_does_not_stop_other_schedules(
    fleet: RealFleet,
) -> None:
    """Guard: an error of one schedule pauses that schedule. If the error escaped, beat would exit
    at every start."""
    fleet.ensure("beat")
    fleet.stack.rows(
        "UPDATE drover_schedule SET expression = '61 * * * *', next_fire_at = ? WHERE agent_id = "
        "(SELECT id FROM drover_agent WHERE name = 'broken')",
        seconds_ago(30),
    )
    time.sleep(2)
    try:
        make_due(fleet, datetime.now(UTC), "mid-claim")
        wait_for(lambda: len(firings(fleet, "mid-claim")) == 2, 6, lambda: fleet.stack.log("beat"))
        assert fleet.stack.processes["beat"].poll() is None
    finally:
        fleet.stack.rows(
            f"UPDATE drover_schedule SET expression = '{FAR_AWAY}', "
            "next_fire_at = NULL WHERE expression = '61 * * * *'"
        )


@pytest.mark.fault("F5", "F6")
def test_three_beats_two_of_which_are_killed_fire_each_instant_once(fleet: RealFleet) -> None:
    """Guards, of which each alone suffices: the claim locks its rows, moving the schedule is a
    compare and set, a firing is unique by schedule and instant. Without all three the same instant
    fires more than once on PostgreSQL."""
    beats = ["beat-1", "beat-2", "beat-3"]
    fleet.ensure("beat")
    fleet.stack.stop("beat")
    fleet.start_all("beat", beats)
    expected: Counter[str] = Counter()
    for round_ in range(4):
        due_at = datetime.now(UTC) + timedelta(seconds=1)
        make_due(fleet, due_at, *CROWD)
        expected.update(CROWD)
        if round_ == 2:
            assert warnings_of(fleet, beats) == []
        if round_ >= 2:
            time.sleep(
                max(0.0, (due_at - datetime.now(UTC)).total_seconds()) + random.random() / 20
            )
            fleet.stack.kill(beats[round_ - 1])
        wait_for(
            lambda: (
                len(firings(fleet, "crowd-%")) >= sum(expected.values())
                and "" not in outcomes(fleet, "crowd-%")
            ),
            10,
            fleet.stack.log("beat-1"),
        )
    time.sleep(1)
    fired = Counter(firing["name"] for firing in firings(fleet, "crowd-%"))
    assert fired == expected
    assert set(outcomes(fleet, "crowd-%")) == {"started"}
    work = fleet.stack.rows(
        "SELECT firing_id FROM drover_work_item WHERE agent_id IN "
        "(SELECT id FROM drover_agent WHERE name LIKE ?)",
        "crowd-%",
    )
    assert len(work) == len({row["firing_id"] for row in work}) == sum(expected.values())
