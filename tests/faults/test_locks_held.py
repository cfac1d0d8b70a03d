"""Locks whose holder dies, expires or is in a deadlock: real runs and connections."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.real_fleet import LEASE_SECONDS, RECONCILE_SECONDS, SLACK_SECONDS, RealFleet
from tests.parts.stack_part import Row
from tests.parts.waiting import wait_for

# Answers of the gateway are written to files; an existing file is complete.
KEEP = (
    'keep() { drover "$@" >"$NOTES.new"; echo "$?" >"$NOTES.code"; mv "$NOTES.new" "$NOTES.$1"; }\n'
)
HOLD = KEEP + 'keep lock "deploy://$THING" --ttl 600; sleep 300'
WAIT = KEEP + 'keep lock "deploy://$THING" --wait 60; keep unlock "deploy://$THING"'
# The lock expires while the run works; then the run releases a lock that another run holds.
OVERSLEEP = KEEP + (
    'keep lock "deploy://$THING" --ttl 1; until [ -e "$NOTES.go" ]; do sleep 0.05; done\n'
    'keep unlock "deploy://$THING"'
)
WAIT_AND_KEEP = KEEP + (
    'keep lock "deploy://$THING" --wait 60; until [ -e "$NOTES.go" ]; do sleep 0.05; done\n'
)
# Each run holds one lock and requests the lock of the other run.
CROSS = KEEP + (
    'drover lock "deploy://$MINE" >/dev/null; touch "$NOTES.mine"\n'
    'until [ -e "$THEIRS.mine" ]; do sleep 0.05; done\n'
    'keep lock "deploy://$WANTED" --wait 60'
)


@pytest.fixture(scope="module")
def fleet(new_fleet: NewFleet) -> RealFleet:
    """One run per worker, so that holder and waiter have different workers."""
    fleet = new_fleet(DROVER_WORKERS="2", DROVER_CONCURRENCY="1")
    for how in ("worker", "run"):
        agent(fleet, f"holds-{how}", HOLD, THING=how)
        agent(fleet, f"waits-{how}", WAIT, THING=how)
    agent(fleet, "oversleeps", OVERSLEEP, THING="bed")
    agent(fleet, "is-next", WAIT_AND_KEEP, THING="bed")
    agent(fleet, "left", CROSS, MINE="fork", WANTED="knife", THEIRS=str(notes(fleet, "right")))
    agent(fleet, "right", CROSS, MINE="knife", WANTED="fork", THEIRS=str(notes(fleet, "left")))
    fleet.sync()
    fleet.ensure("redis", "beat", "gateway", "worker-1", "worker-2")
    return fleet


def notes(fleet: RealFleet, agent: str) -> Path:
    return fleet._notes(agent)


def agent(fleet: RealFleet, name: str, body: str, **variables: str) -> None:
    exported = "".join(f"export {key}={value}\n" for key, value in variables.items())
    fleet.agent(name, exported + body)


def answer(fleet: RealFleet, agent: str, command: str = "lock", seconds: float = 20) -> Any:
    path = Path(f"{notes(fleet, agent)}.{command}")
    return json.loads(wait_for(lambda: path.exists() and path.read_text(), seconds, str(path)))


def wait_in_lock_queue(fleet: RealFleet, agent: str) -> Row:
    """Wait until the request of the agent waits for the lock; returns the row of its wait."""
    fleet.enqueue(agent)
    sql = "SELECT w.* FROM drover_lock_wait w WHERE w.holder LIKE ? AND w.in_line"
    return fleet.stack.wait_for_rows(sql, f"{agent}-%")[0]


@pytest.mark.parametrize("how", ["worker", "run"])
@pytest.mark.fault("F48")
def test_the_lock_of_a_killed_holder_goes_to_the_next_run_with_a_higher_fence(
    fleet: RealFleet, how: str
) -> None:
    """F48. Guard: the end of a run releases its locks in the same transaction. Without that the
    next run waits for ten minutes."""
    fleet.ensure("worker-1", "worker-2")
    fleet.enqueue(f"holds-{how}")
    held = answer(fleet, f"holds-{how}")
    (run,) = fleet.runs(f"holds-{how}")
    wait_in_lock_queue(fleet, f"waits-{how}")
    (worker,) = fleet.stack.rows("SELECT * FROM drover_worker WHERE id = ?", run["worker_id"])
    (note,) = fleet.wait_until_running(f"holds-{how}")
    os.kill(worker["pid"] if how == "worker" else note.pid, signal.SIGKILL)
    killed_at = time.monotonic()
    got = answer(fleet, f"waits-{how}", seconds=30)
    assert time.monotonic() - killed_at < LEASE_SECONDS + 5 + RECONCILE_SECONDS + SLACK_SECONDS
    assert got["ok"] and got["fence"] > held["fence"]
    fleet.wait_for_states(f"holds-{how}", "lost" if how == "worker" else "failed")
    fleet.wait_for_states(f"waits-{how}", "succeeded")
    if how == "worker":
        for role in ("worker-1", "worker-2"):
            if fleet.stack.processes[role].poll() is not None:
                fleet.wait_for_exit(role)


@pytest.mark.fault("F48")
def test_an_expired_lock_goes_to_the_next_run_and_a_late_release_has_no_effect(
    fleet: RealFleet,
) -> None:
    """F48: the holder is alive but does not renew the lock."""
    fleet.ensure("worker-1", "worker-2")
    fleet.enqueue("oversleeps")
    held = answer(fleet, "oversleeps")
    fleet.enqueue("is-next")
    got = answer(fleet, "is-next")
    assert got["ok"] and got["fence"] > held["fence"]
    fleet.let_finish("oversleeps")
    refused = answer(fleet, "oversleeps", "unlock")
    assert not refused["ok"] and refused["holder"].startswith("is-next-")
    assert Path(f"{notes(fleet, 'oversleeps')}.code").read_text() == "1\n"
    sql = "SELECT id FROM drover_resource_lock WHERE uri = 'deploy://bed'"
    assert [row["id"] for row in fleet.stack.rows(sql)] == [got["fence"]]
    fleet.let_finish("is-next")
    fleet.wait_for_states("is-next", "succeeded")


@pytest.mark.fault("F49")
def test_of_two_deadlocked_runs_one_is_refused_and_the_other_gets_the_lock(
    fleet: RealFleet,
) -> None:
    """F49. Guard: each refused request searches for a cycle, one request at a time. Without that
    both runs wait for a minute."""
    fleet.ensure("worker-1", "worker-2")
    fleet.enqueue("left")
    fleet.enqueue("right")
    answers = {name: answer(fleet, name, seconds=20) for name in ("left", "right")}
    refused = [name for name, answer in answers.items() if answer.get("deadlock")]
    assert len(refused) == 1, answers
    (other,) = {"left", "right"} - set(refused)
    assert answers[other]["ok"]
    cycle = answers[refused[0]]["cycle"]
    assert {"deploy://fork", "deploy://knife"} < set(cycle)
    assert [name.rpartition("-")[0] for name in cycle if "://" not in name] == [*refused, other]
    for name in ("left", "right"):
        fleet.wait_for_states(name, "succeeded")
