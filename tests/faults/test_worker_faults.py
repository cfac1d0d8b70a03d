"""Workers that freeze, are cut off, lose their guard, or must stop; runs that kill them."""

import os
import signal
import subprocess
import time

import psutil
import pytest

from agents_app.conf import ROOT
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
    fleet.agent("drained", WHEN_TOLD)
    fleet.agent("rebooted", WHEN_TOLD)
    fleet.agent("overdue", WHEN_TOLD, timeout=1)
    fleet.agent("elsewhere", WHEN_TOLD, timeout=1)
    fleet.agent("poison", "kill -9 $PPID; sleep 300", on_lost="retry")
    fleet.sync()
    fleet.ensure("redis", "beat")
    return fleet


def test_a_worker_frozen_for_two_leases_has_lost_its_run_and_its_runs_are_dead(
    fleet: RealFleet,
) -> None:
    """Guard: the guard kills what is silent before the lease is over. Without it the new attempt
    meets the old copy, which nobody stopped, and an overlap is noted."""
    fleet.ensure("worker-1")
    fleet.ask("frozen")
    fleet.wait_for_notes("frozen", "note", 2)
    (run,) = fleet.runs("frozen")
    worker, pids = fleet.living_worker(), [note.pid for note in fleet.notes("frozen")]
    os.kill(worker["pid"], signal.SIGSTOP)
    frozen_at = time.monotonic()
    gone_within(pids, LEASE_SECONDS, since=frozen_at)
    fleet.wait_for_states("frozen", "lost", "pending", seconds=LEASE_SECONDS)
    fleet.let_go("frozen")
    assert fleet.wait_for_exit("worker-1") == 75
    assert is_gone(worker["pid"])
    fleet.ensure("worker-1")
    fleet.wait_for_states("frozen", "lost", "succeeded")
    assert fleet.notes("frozen", "overlap") == []


def test_what_a_superseded_worker_reports_late_moves_nothing(fleet: RealFleet) -> None:
    """Guard: finish names the owner of the run and needs it to be running. Take the owner and the
    old state out of that update, and the lost run becomes a succeeded one.

    The worker has no guard here, so that it lives to tell."""
    fleet.stack.stop("worker-1")
    role = fleet.stack._role("worker-1")
    command = role.argv[role.argv.index("--") + 1 :]
    process = fleet.stack._spawn("worker-1", command, dict(role.env))
    fleet.ask("late")
    fleet.wait_until_running("late")
    process.send_signal(signal.SIGSTOP)
    fleet.let_go("late")
    fleet.wait_for_notes("late", "end")
    expire = "UPDATE drover_worker SET lease_until = ? WHERE pid = ?"
    fleet.stack.rows(expire, seconds_ago(60), process.pid)
    (lost,) = fleet.wait_for_states("late", "lost")
    process.send_signal(signal.SIGCONT)
    assert fleet.wait_for_exit("worker-1") == -signal.SIGKILL  # by its own hand
    assert fleet.runs("late") == [lost]
    assert "lease.fenced" in fleet.stack.log("worker-1")
