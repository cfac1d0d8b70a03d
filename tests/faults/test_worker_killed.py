"""One `kill -9` of a worker during its runs, and the consequences."""

import time
from dataclasses import dataclass

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.real_fleet import (
    RECONCILE_SECONDS,
    SLACK_SECONDS,
    WHEN_TOLD,
    WITH_DAEMONS,
    Note,
    RealFleet,
    gone_within,
)
from tests.parts.stack_part import Row

IN_A_HOOK = f'echo "hook $DROVER_RUN_ID $$" >>"$NOTES"; {WHEN_TOLD}'
ONE_MORE = 'echo "second $DROVER_RUN_ID $$" >>"$NOTES"'


@dataclass(frozen=True)
class Aftermath:
    """The state between the kill and the start of a new worker."""

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
    fleet.agent("hooked", on_lost="retry", hooks={"after_run": [IN_A_HOOK, ONE_MORE]})
    fleet.sync()
    fleet.ensure("redis", "worker-1")
    fleet.enqueue("hooked")
    fleet.wait_for_notes("hooked", "hook")
    for agent in ("fails", "retries"):
        fleet.enqueue(agent)
        fleet.wait_until_running(agent)
        fleet.wait_for_notes(agent, "note", 2)
    processes = fleet.notes("fails") + fleet.notes("retries")
    killed_at = fleet.kill_worker()
    gone_within([note.pid for note in processes], 2, since=killed_at)
    fleet.ensure("beat")  # not earlier: its sweep would also kill remaining processes
    swept_at = time.monotonic()
    fleet.wait_for_states("fails", "lost")
    lost_after_seconds = time.monotonic() - swept_at
    pending = fleet.wait_for_states("retries", "lost", "pending")
    status = fleet.wait_for_exit("worker-1")
    (lost,) = fleet.runs("fails")
    return Aftermath(fleet, processes, status, lost_after_seconds, lost, pending)


@pytest.mark.fault("F1")
def test_all_processes_of_a_run_are_dead_within_two_seconds(aftermath: Aftermath) -> None:
    """Guard: the guard process of the worker. Without it the daemons keep running and the fixture
    reports them."""
    assert len(aftermath.processes) == 6  # two runs, each with a child and a daemon
    assert aftermath.guard_status == 128 + 9


@pytest.mark.fault("F1")
def test_the_run_of_a_killed_worker_is_lost_and_its_work_failed(aftermath: Aftermath) -> None:
    """Guard: reconcile ends workers of this host whose process is dead. Without that the run is
    lost only when the lease ends, and without the sweep never."""
    assert aftermath.lost_after_seconds < RECONCILE_SECONDS + SLACK_SECONDS
    assert aftermath.lost["error"] == "lost: its worker died"
    assert aftermath.lost["slot"] is None
    assert aftermath.lost["finished_at"] is not None
    assert aftermath.fleet.work("fails") == ["failed"]


@pytest.mark.fault("F1")
def test_with_on_lost_retry_a_new_attempt_succeeds_with_the_next_worker(
    aftermath: Aftermath,
) -> None:
    """Guard: `lose_run` queues the work again, and the same sweep admits it. Without either there
    is no second run; if processes were killed later, both attempts would run at the same time."""
    fleet = aftermath.fleet
    assert [run["attempt"] for run in aftermath.pending] == [1, 2]
    assert [note.what for note in fleet.notes("retries")].count("start") == 1
    fleet.let_finish("retries")
    fleet.ensure("worker-1")
    fleet.wait_for_states("retries", "lost", "succeeded")
    assert fleet.work("retries") == ["done"]
    assert fleet.notes("retries", "overlap") == []
    assert len(fleet.notes("retries", "start")) == 2
    assert fleet.states("fails") == ["lost"]


def test_the_agent_continues_with_other_work(aftermath: Aftermath) -> None:
    """Guard: a lost run releases its slot. Otherwise this work stays queued forever."""
    fleet = aftermath.fleet
    fleet.ensure("worker-1")
    fleet.let_finish("fails")
    fleet.enqueue("fails")
    fleet.wait_for_states("fails", "lost", "succeeded")


@pytest.mark.fault("F1")
def test_hooks_of_a_run_are_not_run_again_after_the_death_of_their_worker(
    aftermath: Aftermath,
) -> None:
    """The program had ended; the run is lost all the same, because its end was not recorded, and
    the next attempt runs hooks of its own."""
    fleet = aftermath.fleet
    fleet.let_finish("hooked")
    fleet.ensure("worker-1")
    first, second = fleet.wait_for_states("hooked", "lost", "succeeded")
    assert [note.run_id for note in fleet.notes("hooked", "hook")] == [first["id"], second["id"]]
    assert [note.run_id for note in fleet.notes("hooked", "second")] == [second["id"]]
