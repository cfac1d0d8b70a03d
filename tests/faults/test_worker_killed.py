"""One `kill -9` of a worker during its runs, and the consequences."""

import time
from dataclasses import dataclass

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.real_fleet import (
    RECONCILE_SECONDS,
    SLACK_SECONDS,
    WITH_DAEMONS,
    Note,
    RealFleet,
    gone_within,
)
from tests.parts.stack_part import Row


@dataclass(frozen=True)
class Aftermath:
    """What was seen between the kill and the start of a new worker."""

    fleet: RealFleet
    processes: list[Note]
    guard_status: int
    lost_after_seconds: float
    lost: Row
    pending: list[Row]


@pytest.fixture(scope="module")
def aftermath(new_fleet: NewFleet) -> Aftermath:
    fleet = new_fleet()
    fleet.agent("fails", WITH_DAEMONS)
    fleet.agent("retries", WITH_DAEMONS, on_lost="retry")
    fleet.sync()
    fleet.ensure("redis", "worker-1")
    for agent in ("fails", "retries"):
        fleet.ask(agent)
        fleet.wait_until_running(agent)
        fleet.wait_for_notes(agent, "note", 2)
    processes = fleet.notes("fails") + fleet.notes("retries")
    killed_at = fleet.kill_worker()
    gone_within([note.pid for note in processes], 2, since=killed_at)
    fleet.ensure("beat")  # not before: its sweep would end leftovers, too
    swept_at = time.monotonic()
    fleet.wait_for_states("fails", "lost")
    lost_after_seconds = time.monotonic() - swept_at
    pending = fleet.wait_for_states("retries", "lost", "pending")
    status = fleet.wait_for_exit("worker-1")
    (lost,) = fleet.runs("fails")
    return Aftermath(fleet, processes, status, lost_after_seconds, lost, pending)


@pytest.mark.fault("F1")
def test_everything_a_run_had_started_is_dead_within_two_seconds(aftermath: Aftermath) -> None:
    """Guard: the guard process above the worker. Without it the daemons sleep on and the fixture
    reports them as still alive."""
    assert len(aftermath.processes) == 6  # two runs, each with a child and a daemon
    assert aftermath.guard_status == 128 + 9


@pytest.mark.fault("F1")
def test_the_run_of_a_killed_worker_is_lost_and_its_work_failed(aftermath: Aftermath) -> None:
    """Guard: reconcile ends the workers of this host that are provably dead. Without that the
    run is lost only when the lease is over, and without the sweep never."""
    assert aftermath.lost_after_seconds < RECONCILE_SECONDS + SLACK_SECONDS
    assert aftermath.lost["error"] == "lost: its worker died"
    assert aftermath.lost["slot"] is None
    assert aftermath.lost["finished_at"] is not None
    assert aftermath.fleet.work("fails") == ["failed"]


@pytest.mark.fault("F1")
def test_with_on_lost_retry_a_new_attempt_succeeds_when_a_worker_is_back(
    aftermath: Aftermath,
) -> None:
    """Guard: `lose` puts the work back, and the same pass of reconcile admits it. Break either
    and no second run appears; kill the processes later than that, and the two copies meet."""
    fleet = aftermath.fleet
    assert [run["attempt"] for run in aftermath.pending] == [1, 2]
    assert [note.what for note in fleet.notes("retries")].count("start") == 1
    fleet.let_go("retries")
    fleet.ensure("worker-1")
    fleet.wait_for_states("retries", "lost", "succeeded")
    assert fleet.work("retries") == ["done"]
    assert fleet.notes("retries", "overlap") == []
    assert len(fleet.notes("retries", "start")) == 2
    assert fleet.states("fails") == ["lost"]


def test_the_agent_goes_on_with_other_work(aftermath: Aftermath) -> None:
    """Guard: a lost run gives its slot back. Keep the slot and this stays queued for ever."""
    fleet = aftermath.fleet
    fleet.ensure("worker-1")
    fleet.let_go("fails")
    fleet.ask("fails")
    fleet.wait_for_states("fails", "lost", "succeeded")
