"""The bookkeeping of a soak finds what it is to find: losses, duplicates and two live runs."""

import random
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from tests.faults.real_fleet import RealFleet
from tests.parts.fixtures import NewStack
from tests.parts.processes import stop_by_pid, tree_of
from tests.parts.stack_part import Row
from tests.parts.waiting import wait_for
from tests.soak import reading
from tests.soak.fleet import MINUTELY, add_agents
from tests.soak.killing import WEIGHTS, choose, processes_by_role, role_of_command
from tests.soak.report import SoakReport, compare, whole_minutes

EMPTY = {"kills": {"beat": 2}, "runs": {"succeeded": 3}, "answers": {200: 4}, "comparisons": ()}
# The shape of a stack: the names are those that `up` and Celery give to the processes.
TREE = """
(exec -a "python -IS guard.py --silence 5 -- serve worker" \
  bash -c '(exec -a celeryd bash -c "sleep 60 & wait") & wait') &
(exec -a "[celery beat]" sleep 60) &
(exec -a "python -m gateway_app.serve" sleep 60) &
(exec -a "valkey-server unixsocket" sleep 60) &
wait
"""


def test_acknowledged_keys_without_a_row_are_lost_and_keys_with_two_rows_duplicate():
    comparison = compare("deliveries", ["a", "b", "c"], {"a": 1, "b": 2, "unanswered": 1})
    assert (comparison.expected, comparison.rows) == (3, 4)
    assert (comparison.lost, comparison.duplicate) == (["c"], ["b"])
    assert not comparison.is_equal
    assert compare("deliveries", ["a"], {"a": 1, "unanswered": 1}).is_equal


def test_the_minutes_of_a_schedule_begin_after_its_creation_and_include_the_last():
    created = datetime(2026, 3, 2, 11, 58, 30, tzinfo=UTC)
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    assert [minute.minute for minute in whole_minutes(created, noon)] == [59, 0]
    assert [minute.minute for minute in whole_minutes(noon, noon)] == []


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"comparisons": [compare("deliveries", ["x"], {})]}, "lost: x"),
        ({"overlaps": ["manual, run 7"]}, "two live runs: manual, run 7"),
        ({"unsettled": ["manual: 1 queued"]}, "not settled: manual: 1 queued"),
        ({"violations": ["undecided_firing: 1"]}, "invariant: undecided_firing: 1"),
        ({"missed_roles": ["redis"]}, "no redis was killed"),
    ],
)
def test_each_kind_of_problem_is_printed(wrong, text):
    report = SoakReport("sqlite", 60, 1, **{**EMPTY, **wrong})
    assert report.problems and text in str(report)
    good = SoakReport("sqlite", 60, 1, **EMPTY)
    assert good.problems == [] and str(good).endswith("no problem")


# --- processes ------------------------------------------------------------------------------


@pytest.fixture
def tree() -> Iterator[psutil.Process]:
    top = subprocess.Popen(["bash", "-c", TREE])
    yield psutil.Process(top.pid)
    for pid in reversed(tree_of(top.pid)):
        stop_by_pid(pid)
    top.wait()


def test_every_process_of_a_stack_has_a_role(tree: psutil.Process):
    present = wait_for(lambda: (found := processes_by_role(tree)).keys() == set(WEIGHTS) and found)
    assert {role: len(processes) for role, processes in present.items()} == dict.fromkeys(
        WEIGHTS, 1
    )
    assert present["run"][0].parent() == present["worker"][0]
    assert present["worker"][0].parent() == present["guard"][0]
    chance = random.Random(1)
    assert {choose(present, chance)[0] for _ in range(200)} == set(WEIGHTS)


def test_a_process_that_is_no_role_is_not_killed():
    assert role_of_command("python -m celery flower") == ""


# --- rows -----------------------------------------------------------------------------------


def test_missing_instants_and_second_executions_are_found_in_rows_and_notes(new_stack: NewStack):
    fleet = RealFleet(new_stack())
    add_agents(fleet)
    try:
        fleet.sync()
        (schedule,) = fleet.stack.rows(
            "SELECT s.id, s.tenant_id FROM drover_schedule s JOIN drover_agent a "
            "ON a.id = s.agent_id WHERE a.name = ?",
            MINUTELY,
        )
        fleet.stack.rows("UPDATE drover_schedule SET created_at = '2026-03-02 11:57:30'")
        for minute in ("11:58:00", "12:00:00"):
            record_firing(fleet, schedule, f"2026-03-02 {minute}")
        note(fleet, "manual", "start 7 100", "start 8 101", "overlap 8 101", "start 7 102")
        noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
        instants = compare("instants", reading._due(fleet, noon), reading._fired(fleet))
        assert instants.lost == ["2026-03-02 11:59:00+00:00"]
        assert reading.has_fired(fleet, noon)
        assert compare("executions", (), reading._executions(fleet)).duplicate == ["7"]
        assert reading.overlaps(fleet) == ["manual, run 8"]
        assert reading.violations(fleet) == []
    finally:
        fleet.close()


def record_firing(fleet: RealFleet, schedule: Row, due_at: str) -> None:
    columns = "schedule_id, tenant_id, due_at, recorded_at, decide_at, outcome, reason"
    fleet.stack.rows(
        f"INSERT INTO drover_firing ({columns}) VALUES (?, ?, ?, ?, ?, 'skipped', 'missed')",
        *(schedule["id"], schedule["tenant_id"], due_at, due_at, due_at),
    )


def note(fleet: RealFleet, agent: str, *lines: str) -> None:
    Path(fleet._notes(agent)).write_text("".join(f"{line}\n" for line in lines))
