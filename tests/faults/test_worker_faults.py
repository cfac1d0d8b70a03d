"""Workers that freeze, lose the database or their guard, or must stop; runs that kill them."""

import os
import signal
import time

import pytest

from agents_app.worker.lease import process_started
from tests.faults.conftest import NewFleet
from tests.faults.real_fleet import (
    LEASE_SECONDS,
    SLACK_SECONDS,
    WHEN_TOLD,
    WITH_DAEMONS,
    RealFleet,
    gone_within,
    seconds_ago,
)
from tests.parts.processes import is_gone, stop_by_pid
from tests.parts.waiting import wait_for


@pytest.fixture(scope="module")
def fleet(new_fleet: NewFleet) -> RealFleet:
    fleet = new_fleet()
    fleet.agent("bystander")
    fleet.agent("frozen", WITH_DAEMONS, on_lost="retry")
    fleet.agent("late", WHEN_TOLD)
    fleet.agent("unguarded", WHEN_TOLD)
    fleet.agent("abandoned", WITH_DAEMONS, on_lost="retry")
    fleet.agent("drained", WHEN_TOLD)
    fleet.agent("rebooted", WHEN_TOLD)
    fleet.agent("overdue", WHEN_TOLD, timeout=600)
    fleet.agent("elsewhere", WHEN_TOLD, timeout=600)
    fleet.agent("poison", "kill -9 $PPID; sleep 300", on_lost="retry", sandbox="off")
    fleet.sync()
    fleet.ensure("redis", "beat")
    return fleet


@pytest.mark.fault("F22")
def test_a_worker_frozen_for_two_leases_has_lost_its_run_and_its_processes_are_dead(
    fleet: RealFleet,
) -> None:
    """Guard: the guard kills a silent worker before the lease ends. Without it the processes of the
    old attempt still run when the new attempt starts, and an overlap is logged."""
    fleet.ensure("worker-1")
    fleet.enqueue("frozen")
    fleet.wait_for_notes("frozen", "note", 2)
    worker, pids = fleet.latest_worker(), [note.pid for note in fleet.notes("frozen")]
    fleet.freeze(worker["pid"])
    frozen_at = time.monotonic()
    gone_within(pids, LEASE_SECONDS, since=frozen_at)
    fleet.wait_for_states("frozen", "lost", "pending", seconds=LEASE_SECONDS)
    fleet.let_finish("frozen")
    assert fleet.wait_for_exit("worker-1") == 75
    assert is_gone(worker["pid"])
    fleet.ensure("worker-1")
    fleet.wait_for_states("frozen", "lost", "succeeded")
    assert fleet.notes("frozen", "overlap") == []


@pytest.mark.fault("F21", "F22")
def test_a_late_report_of_a_superseded_worker_changes_no_row(fleet: RealFleet) -> None:
    """Guard: `finish_run` names the owner and the old state of the run. Without both conditions the
    lost run becomes succeeded.

    The worker has no guard here, so that it is alive to report."""
    fleet.stack.stop("worker-1")
    role = fleet.stack._role("worker-1")
    command = role.argv[role.argv.index("--") + 1 :]
    process = fleet.stack._spawn("worker-1", command, dict(role.env))
    fleet.enqueue("late")
    fleet.wait_until_running("late")
    fleet.freeze(process.pid)
    fleet.let_finish("late")
    fleet.wait_for_notes("late", "end")
    expire = "UPDATE drover_worker SET lease_until = ? WHERE pid = ?"
    fleet.stack.rows(expire, seconds_ago(60), process.pid)
    (lost,) = fleet.wait_for_states("late", "lost")
    process.send_signal(signal.SIGCONT)
    assert fleet.wait_for_exit("worker-1") == -signal.SIGKILL  # it kills itself
    assert fleet.runs("late") == [lost]
    assert "lease.fenced" in fleet.stack.log("worker-1")


def test_when_its_guard_is_killed_a_worker_drains_and_its_run_is_not_lost(
    fleet: RealFleet,
) -> None:
    """Guard: the worker gets TERM from the kernel when its guard dies. Without it a worker
    without a guard would start further runs."""
    fleet.ensure("worker-1")
    fleet.enqueue("unguarded")
    fleet.wait_until_running("unguarded")
    worker = fleet.latest_worker()
    guard = fleet.stack.processes.pop("worker-1")
    guard.kill()
    guard.wait()
    try:
        fleet.stack.wait_for_rows(
            "SELECT 1 FROM drover_worker WHERE id = ? AND state = 'draining'", worker["id"]
        )
        fleet.enqueue("bystander")
        fleet.let_finish("unguarded")
        fleet.wait_for_states("unguarded", "succeeded")
        wait_for(lambda: is_gone(worker["pid"]), 10, "the worker did not end")
        assert fleet.states("bystander") == ["pending"]
        fleet.ensure("worker-1")
        fleet.wait_for_states("bystander", "succeeded")
    finally:
        stop_by_pid(worker["pid"])


def test_when_guard_and_worker_are_killed_the_run_is_dead_before_its_retry(
    fleet: RealFleet,
) -> None:
    """Guard: before a run is lost, reconcile kills its remaining processes on this host. Without
    that they still hold the lock when the second attempt starts."""
    fleet.ensure("worker-1", "beat")
    fleet.enqueue("abandoned")
    fleet.wait_for_notes("abandoned", "note", 2)
    pids = [note.pid for note in fleet.notes("abandoned")]
    worker, guard = fleet.latest_worker(), fleet.stack.processes["worker-1"]
    guard.send_signal(signal.SIGSTOP)  # otherwise it would kill them first
    os.kill(worker["pid"], signal.SIGKILL)
    guard.kill()
    assert fleet.wait_for_exit("worker-1") == -signal.SIGKILL
    fleet.wait_for_states("abandoned", "lost", "pending")
    assert all(map(is_gone, pids))
    fleet.let_finish("abandoned")
    fleet.ensure("worker-1")
    fleet.wait_for_states("abandoned", "lost", "succeeded")
    assert fleet.notes("abandoned", "overlap") == []


@pytest.mark.fault("F24")
def test_on_sigterm_a_worker_finishes_its_runs_and_starts_no_new_run(fleet: RealFleet) -> None:
    """Guard: a draining worker starts no next run in its slot. Without that the second run is
    executed by the worker that is stopping."""
    fleet.ensure("worker-1")
    fleet.enqueue("drained", 2)
    fleet.wait_until_running("drained")
    worker = fleet.latest_worker()
    guard = fleet.stack.processes["worker-1"]
    guard.terminate()
    fleet.stack.wait_for_rows(
        "SELECT 1 FROM drover_worker WHERE id = ? AND state = 'draining'", worker["id"]
    )
    already = len(fleet.runs("bystander"))
    fleet.enqueue("bystander")
    time.sleep(1)
    assert guard.poll() is None
    fleet.let_finish("drained")
    assert fleet.wait_for_exit("worker-1") == 0
    assert fleet.states("drained") == ["succeeded", "pending"]
    assert fleet.states("bystander")[already:] == ["pending"]
    (row,) = fleet.stack.rows("SELECT state FROM drover_worker WHERE id = ?", worker["id"])
    assert row["state"] == "stopped"
    fleet.ensure("worker-1")
    first, second = fleet.wait_for_states("drained", "succeeded", "succeeded")
    assert first["worker_id"] == worker["id"] != second["worker_id"]


@pytest.mark.parametrize("how", ["rebooted", "reused"])
@pytest.mark.fault("F25")
def test_after_a_reboot_runs_are_lost_immediately_although_the_pid_exists(
    fleet: RealFleet, how: str
) -> None:
    """Guard: a worker is alive if boot id, pid and start time are the same. With the pid alone the
    run stays running until its lease ends, in an hour."""
    fleet.ensure("worker-1")
    fleet.stack.stop("beat")
    before = len(fleet.runs("rebooted"))
    fleet.enqueue("rebooted")
    fleet.wait_until_running("rebooted", before + 1)
    worker = fleet.latest_worker()
    fleet.kill_worker()
    fleet.wait_for_exit("worker-1")
    # Its pid and start time belong to a live process, this one, as may happen after a reboot.
    started = process_started(os.getpid())
    assert started
    boot_id, pid_started = ("another", started) if how == "rebooted" else (worker["boot_id"], 1)
    fleet.stack.rows(
        "UPDATE drover_worker SET boot_id = ?, pid = ?, pid_started = ?, lease_until = ? "
        "WHERE id = ?",
        *(boot_id, os.getpid(), pid_started, seconds_ago(-3600), worker["id"]),
    )
    fleet.ensure("beat")
    fleet.wait_for_states("rebooted", *["lost"] * (before + 1), seconds=SLACK_SECONDS)


@pytest.mark.fault("F45")
def test_a_run_past_its_time_limit_is_ended_although_its_worker_is_dead(
    fleet: RealFleet,
) -> None:
    """Guard: the sweep compares the deadline in the row. Without `_stop_overdue` the second run
    stays running forever, because its worker is on an unreachable machine."""
    fleet.ensure("worker-1")
    fleet.stack.stop("beat")
    for agent in ("overdue", "elsewhere"):
        fleet.enqueue(agent)
        fleet.wait_until_running(agent)
    worker = fleet.latest_worker()
    fleet.kill_worker()
    fleet.wait_for_exit("worker-1")
    # An unreachable machine, and a worker with a lease of an hour.
    fleet.stack.rows(
        "UPDATE drover_worker SET host = 'elsewhere', lease_until = ? WHERE id = ?",
        *(seconds_ago(-3600), worker["id"]),
    )
    fleet.stack.rows(
        "UPDATE drover_run SET deadline_at = ? WHERE slot IS NOT NULL", seconds_ago(60)
    )
    fleet.ensure("beat")
    wait_for(
        lambda: all(
            fleet.runs(agent)[0]["stop_requested_at"] for agent in ("overdue", "elsewhere")
        ),
        5,
        fleet.facts("overdue"),
    )
    fleet.stack.rows(
        "UPDATE drover_worker SET lease_until = ? WHERE id = ?", seconds_ago(60), worker["id"]
    )
    for agent in ("overdue", "elsewhere"):
        fleet.wait_for_states(agent, "lost")


@pytest.mark.fault("F51")
def test_work_that_always_kills_its_worker_is_dead_after_three_losses(
    fleet: RealFleet,
) -> None:
    """Guard: losses of a work item are counted over 72 hours. Without the count the work
    item kills a worker every few seconds, and this test finds a fifth attempt."""
    already = len(fleet.runs("bystander"))
    fleet.ensure("worker-1", "beat")
    fleet.enqueue("poison")
    for losses in range(1, 5):
        assert fleet.wait_for_exit("worker-1") == 128 + 9
        fleet.ensure("worker-1")
        fleet.wait_for_notes("poison", "start", min(losses + 1, 4))
    fleet.wait_for_states("poison", "lost", "lost", "lost", "dead")
    assert fleet.work("poison") == ["failed"]
    fleet.enqueue("bystander")
    fleet.wait_for_states("bystander", *["succeeded"] * (already + 1))
    time.sleep(2)
    assert len(fleet.notes("poison", "start")) == 4
    assert fleet.notes("poison", "overlap") == []
