"""The sweep mends what crashes leave behind, and takes nothing from those who live."""

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
    """What a worker row says that is this very process."""
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
    """As one of many sweeps, ten seconds after the last."""
    last = {"last_reconcile_at": now - timedelta(seconds=10)}
    Scheduler.objects.update_or_create(pk=1, defaults=last)
    reconcile(now, HERE)


# --- whose worker is gone -------------------------------------------------------------------


def test_the_runs_of_a_dead_process_of_this_host_are_lost_at_once(fleet: Fleet):
    agent = fleet.agent()
    run = running(fleet, agent, **dead_process())
    found = reconcile(at(1), HERE)
    assert (found["workers_ended"], found["runs_lost"]) == (1, 1)
    run.refresh_from_db()
    assert (run.state, run.error, run.finished_at) == ("lost", "lost: its worker died", at(1))
    worker = Worker.objects.get()
    assert (worker.state, worker.ended_at) == ("dead", at(1))


def test_a_living_worker_keeps_its_runs(fleet: Fleet):
    agent = fleet.agent()
    running(fleet, agent, **this_process())
    assert not any(reconcile(at(1), HERE).values())
    assert run_states(agent) == ["running"]


def test_after_a_reboot_all_runs_of_before_are_lost_at_once(fleet: Fleet):
    agent = fleet.agent()
    running(fleet, agent, **{**this_process(), "boot_id": "of the last boot"})
    reconcile(at(1), HERE)
    assert run_states(agent) == ["lost"]


def test_a_pid_that_belongs_to_another_process_now_is_not_taken_for_alive(fleet: Fleet):
    agent = fleet.agent()
    mine = this_process()
    running(fleet, agent, **{**mine, "pid_started": mine["pid_started"] - 60})
    reconcile(at(1), HERE)
    assert run_states(agent) == ["lost"]


@pytest.mark.fault("F26")
def test_the_process_that_got_the_pid_is_left_in_peace(fleet: Fleet):
    with subprocess.Popen(["sleep", "60"]) as stranger:
        taken = {**this_process(), "pid": stranger.pid, "pid_started": 1.0}
        run = running(fleet, fleet.agent(), **taken)
        Run.objects.filter(pk=run.pk).update(pid=stranger.pid)
        reconcile(at(1), HERE)
        assert stranger.poll() is None
        stranger.kill()


def test_when_the_clock_was_set_living_workers_stay_alive(durable_fleet: Fleet, monkeypatch):
    """The moment a process started is reckoned from the clock of now: both must be compared so."""
    lease = Lease("worker", 1)
    try:
        real = _pslinux.boot_time
        monkeypatch.setattr(_pslinux, "boot_time", lambda: real() + 3600)
        reconcile(datetime.now(UTC) + timedelta(hours=1), this_host())
        assert Worker.objects.get().state == "alive"
    finally:
        lease.end()


@pytest.mark.parametrize(("seconds", "state"), [(35, "running"), (35.1, "lost")])
def test_on_another_host_the_end_of_the_lease_and_a_little_more_decides(
    fleet: Fleet, seconds, state
):
    agent = fleet.agent()
    running(fleet, agent, host="elsewhere", lease_until=at(30))
    sweep_without_a_jump(at(seconds))
    assert run_states(agent) == [state]


def test_a_worker_of_this_host_that_lives_and_does_not_renew_loses_its_runs(fleet: Fleet):
    agent = fleet.agent()
    running(fleet, agent, **this_process(), lease_until=at(30))
    sweep_without_a_jump(at(36))
    assert run_states(agent) == ["lost"]


def test_a_running_run_that_belongs_to_nobody_is_lost(fleet: Fleet):
    agent = fleet.agent()
    run = running(fleet, agent)
    Run.objects.filter(pk=run.pk).update(worker=None)
    reconcile(at(1), HERE)
    assert run_states(agent) == ["lost"]


def test_a_run_that_waits_for_a_worker_is_not_lost_with_one(fleet: Fleet):
    agent = fleet.agent()
    fleet.ask(agent)
    fleet.worker(**dead_process())
    reconcile(at(1), HERE)
    assert run_states(agent) == ["pending"]


def test_lost_work_is_tried_again_in_the_same_sweep_where_the_agent_says_so(fleet: Fleet):
    agent = fleet.agent(on_lost="retry")
    running(fleet, agent, **dead_process())
    reconcile(at(1), HERE)
    assert run_states(agent) == ["lost", "pending"]
    assert work_states(agent) == ["admitted"]


def test_work_that_kills_its_worker_every_time_ends_dead_and_others_go_on(fleet: Fleet):
    agent = fleet.agent(on_lost="retry")
    poison, innocent = fleet.ask(agent), fleet.ask(agent)
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


def test_the_processes_of_a_lost_run_are_dead_before_it_is_tried_again(fleet: Fleet):
    """Worker and guard were both killed: what they had started is nobody's child any more."""
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


# --- when the clock jumps -------------------------------------------------------------------


@pytest.mark.fault("F17")
def test_after_a_jump_of_the_clock_leases_get_one_period_to_be_renewed(fleet: Fleet):
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


def test_a_clock_that_goes_back_takes_no_lease_either(fleet: Fleet):
    agent = fleet.agent()
    reconcile(at(hours=1), HERE)
    running(fleet, agent, lease_until=at(-60))
    reconcile(NOON, HERE)
    assert run_states(agent) == ["running"]


def test_a_jump_does_not_protect_what_is_provably_dead(fleet: Fleet):
    agent = fleet.agent()
    reconcile(at(0), HERE)
    running(fleet, agent, **dead_process())
    reconcile(at(hours=1), HERE)
    assert run_states(agent) == ["lost"]


def test_without_a_jump_nothing_is_held_back(fleet: Fleet):
    agent = fleet.agent()
    running(fleet, agent, lease_until=at(30))
    sweep_without_a_jump(at(36))
    assert run_states(agent) == ["lost"]


def test_the_first_sweep_of_all_gives_leases_one_period_too(fleet: Fleet):
    agent = fleet.agent()
    running(fleet, agent, lease_until=at(-3600))
    reconcile(NOON, HERE)
    assert run_states(agent) == ["running"]
    for seconds in (10, 20, 30):
        reconcile(at(seconds), HERE)
    assert run_states(agent) == ["lost"]
