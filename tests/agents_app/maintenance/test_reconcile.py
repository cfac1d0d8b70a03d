"""The sweep repairs rows after crashes, and does not change runs of live workers."""

import os
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psutil import _pslinux

from agents_app.conf import CONF
from agents_app.maintenance.reconcile import reconcile
from agents_app.models import Run, Scheduler, Worker
from agents_app.worker.lease import Lease, boot_id, process_started, this_host
from tests.agents_app.fleet import NOON, Fleet, at, live_run, run_states, running, work_states
from tests.parts.processes import is_gone

HERE = "here"


def this_process() -> dict[str, Any]:
    """The columns of a worker row that describes this process."""
    return {
        "host": HERE,
        "boot_id": boot_id(),
        "pid": os.getpid(),
        "pid_started": process_started(os.getpid()),
    }


def dead_process() -> dict[str, Any]:
    child = subprocess.Popen(["true"])
    child.wait()
    return {**this_process(), "pid": child.pid}


def sweep_without_a_jump(now: datetime) -> None:
    """Run a sweep ten seconds after an earlier sweep."""
    last = {"last_reconcile_at": now - timedelta(seconds=10)}
    Scheduler.objects.update_or_create(pk=1, defaults=last)
    reconcile(now, HERE)


# --- dead workers ---------------------------------------------------------------------------


def test_runs_of_a_dead_worker_process_of_this_host_are_lost_immediately(fleet: Fleet):
    agent = fleet.agent()
    run = running(fleet, agent, **dead_process())
    found = reconcile(at(1), HERE)
    assert (found["workers_ended"], found["runs_lost"]) == (1, 1)
    run.refresh_from_db()
    assert (run.state, run.error, run.finished_at) == ("lost", "lost: its worker died", at(1))
    worker = Worker.objects.get()
    assert (worker.state, worker.ended_at) == ("dead", at(1))


def test_a_live_worker_keeps_its_runs(fleet: Fleet):
    agent = fleet.agent()
    running(fleet, agent, **this_process())
    assert not any(reconcile(at(1), HERE).values())
    assert run_states(agent) == ["running"]


@pytest.mark.fault("F25")
def test_after_a_reboot_all_earlier_runs_are_lost_immediately(fleet: Fleet):
    agent = fleet.agent()
    running(fleet, agent, **{**this_process(), "boot_id": "of the last boot"})
    reconcile(at(1), HERE)
    assert run_states(agent) == ["lost"]


def test_a_worker_whose_pid_belongs_to_another_process_is_dead(fleet: Fleet):
    agent = fleet.agent()
    mine = this_process()
    running(fleet, agent, **{**mine, "pid_started": mine["pid_started"] - 60})
    reconcile(at(1), HERE)
    assert run_states(agent) == ["lost"]


@pytest.mark.fault("F26")
def test_another_process_with_the_pid_of_a_worker_is_not_killed(fleet: Fleet):
    with subprocess.Popen(["sleep", "60"]) as other_process:
        taken = {**this_process(), "pid": other_process.pid, "pid_started": 1.0}
        run = running(fleet, fleet.agent(), **taken)
        Run.objects.filter(pk=run.pk).update(pid=other_process.pid)
        reconcile(at(1), HERE)
        assert other_process.poll() is None
        other_process.kill()


def test_live_workers_stay_alive_after_the_clock_was_set(durable_fleet: Fleet, monkeypatch):
    """The start time of a process is computed from the present clock, so it may differ."""
    lease = Lease("worker", 1)
    try:
        real = _pslinux.boot_time
        monkeypatch.setattr(_pslinux, "boot_time", lambda: real() + 3600)
        reconcile(datetime.now(UTC) + timedelta(hours=1), this_host())
        assert Worker.objects.get().state == "alive"
    finally:
        lease.end()


@pytest.mark.parametrize(("seconds", "state"), [(35, "running"), (35.1, "lost")])
def test_a_worker_of_another_host_is_dead_shortly_after_its_lease_ends(
    fleet: Fleet, seconds, state
):
    agent = fleet.agent()
    running(fleet, agent, host="elsewhere", lease_until=at(30))
    sweep_without_a_jump(at(seconds))
    assert run_states(agent) == [state]


def test_a_live_worker_that_does_not_renew_its_lease_loses_its_runs(fleet: Fleet):
    agent = fleet.agent()
    running(fleet, agent, **this_process(), lease_until=at(30))
    sweep_without_a_jump(at(36))
    assert run_states(agent) == ["lost"]


def test_a_running_run_without_a_worker_is_lost(fleet: Fleet):
    agent = fleet.agent()
    run = running(fleet, agent)
    Run.objects.filter(pk=run.pk).update(worker=None)
    reconcile(at(1), HERE)
    assert run_states(agent) == ["lost"]


def test_a_pending_run_is_not_lost_with_a_worker(fleet: Fleet):
    agent = fleet.agent()
    fleet.enqueue(agent)
    fleet.worker(**dead_process())
    reconcile(at(1), HERE)
    assert run_states(agent) == ["pending"]


@pytest.mark.fault("F1")
def test_lost_work_is_retried_in_the_same_sweep_if_on_lost_is_retry(fleet: Fleet):
    agent = fleet.agent(on_lost="retry")
    running(fleet, agent, **dead_process())
    reconcile(at(1), HERE)
    assert run_states(agent) == ["lost", "pending"]
    assert work_states(agent) == ["admitted"]


@pytest.mark.fault("F51")
def test_work_that_always_kills_its_worker_ends_dead_and_other_work_continues(fleet: Fleet):
    agent = fleet.agent(on_lost="retry")
    poison, innocent = fleet.enqueue(agent), fleet.enqueue(agent)
    for second in range(4):
        fleet.start(poison, at(second), fleet.worker(**dead_process()))
        reconcile(at(second), HERE)
    assert list(poison.runs.order_by("id").values_list("state", flat=True)) == [
        "lost",
        "lost",
        "lost",
        "dead",
    ]
    assert live_run(innocent).state == "pending"


def test_the_processes_of_a_lost_run_are_dead_before_its_retry(fleet: Fleet):
    """Worker and guard were both killed: no process supervises the processes of the run."""
    agent = fleet.agent(on_lost="retry")
    run = running(fleet, agent, **dead_process())
    marked = {
        "DROVER_RUN_ID": str(run.pk),
        "DROVER_TRACE_ID": run.trace_id,
        "PATH": os.environ["PATH"],
    }
    left = subprocess.Popen(["sleep", "60"], env=marked, start_new_session=True)
    try:
        Run.objects.filter(pk=run.pk).update(pid=left.pid)
        reconcile(at(1), HERE)
        assert run_states(agent) == ["running"] or is_gone(left.pid)
    finally:
        left.kill()
        left.wait()


# --- clock jumps ----------------------------------------------------------------------------


@pytest.mark.fault("F17")
def test_after_a_clock_jump_workers_have_one_lease_period_to_renew(fleet: Fleet):
    agent = fleet.agent()
    running(fleet, agent, lease_until=at(30))
    reconcile(at(0), HERE)
    reconcile(at(hours=1), HERE)
    assert run_states(agent) == ["running"]
    reconcile(at(10, hours=1), HERE)
    assert run_states(agent) == ["running"]
    reconcile(at(20, hours=1), HERE)
    reconcile(at(CONF.lease_seconds, hours=1), HERE)
    assert run_states(agent) == ["lost"]


def test_a_lease_renewed_after_a_jump_is_not_lost(fleet: Fleet):
    agent = fleet.agent()
    running(fleet, agent, lease_until=at(30))
    reconcile(at(0), HERE)
    reconcile(at(hours=1), HERE)
    Worker.objects.update(lease_until=at(60, hours=1))
    for seconds in (10, 20, 30, 40):
        reconcile(at(seconds, hours=1), HERE)
    assert run_states(agent) == ["running"]


@pytest.mark.fault("F18")
def test_a_clock_set_back_ends_no_lease(fleet: Fleet):
    agent = fleet.agent()
    reconcile(at(hours=1), HERE)
    running(fleet, agent, lease_until=at(-60))
    reconcile(NOON, HERE)
    assert run_states(agent) == ["running"]


def test_a_clock_jump_does_not_protect_a_dead_process(fleet: Fleet):
    agent = fleet.agent()
    reconcile(at(0), HERE)
    running(fleet, agent, **dead_process())
    reconcile(at(hours=1), HERE)
    assert run_states(agent) == ["lost"]


def test_without_a_clock_jump_expired_leases_end_immediately(fleet: Fleet):
    agent = fleet.agent()
    running(fleet, agent, lease_until=at(30))
    sweep_without_a_jump(at(36))
    assert run_states(agent) == ["lost"]


def test_the_first_sweep_gives_workers_one_lease_period_to_renew(fleet: Fleet):
    agent = fleet.agent()
    running(fleet, agent, lease_until=at(-3600))
    reconcile(NOON, HERE)
    assert run_states(agent) == ["running"]
    for seconds in (10, 20, 30):
        reconcile(at(seconds), HERE)
    assert run_states(agent) == ["lost"]
