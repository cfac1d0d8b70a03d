"""The sweep mends what crashes leave behind, and takes nothing from those who live."""

import os
import subprocess
import time
from datetime import UTC, datetime, timedelta

import psutil
import pytest

from agents_app import lease as lease_module
from agents_app import relay
from agents_app.conf import CONF
from agents_app.lease import Lease, boot_id, process_started, this_host, this_host
from agents_app.maintenance.reconcile import reconcile
from agents_app.models import Agent, Run, Scheduler, Worker
from tests.agents.fleet import NOON, Fleet, at, live_run, run_states, work_states
from tests.parts.processes import is_gone
from tests.parts.waiting import wait_for

HERE = "here"


def this_process() -> dict[str, object]:
    """What a worker row says that is this very process."""
    return {
        "host": HERE,
        "boot_id": boot_id(),
        "pid": os.getpid(),
        "pid_started": process_started(os.getpid()),
    }


def dead_process() -> dict[str, object]:
    child = subprocess.Popen(["true"])
    child.wait()
    return {**this_process(), "pid": child.pid}


def running(fleet: Fleet, agent: Agent, now: datetime = NOON, **worker: object) -> Run:
    job = fleet.start(fleet.ask(agent, now), now, fleet.worker(**worker))
    return Run.objects.get(pk=job.run_id)


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
    earlier = process_started(os.getpid()) - 60
    running(fleet, agent, **{**this_process(), "pid_started": earlier})
    reconcile(at(1), HERE)
    assert run_states(agent) == ["lost"]


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
        real = psutil._psplatform.boot_time
        monkeypatch.setattr(psutil._psplatform, "boot_time", lambda: real() + 3600)
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


# --- over time ------------------------------------------------------------------------------


def test_a_run_far_over_its_time_limit_is_told_to_stop(fleet: Fleet):
    agent = fleet.agent(timeout_seconds=60)
    running(fleet, agent)
    over = 60 + CONF.grace_seconds + 5
    assert reconcile(at(over), HERE)["runs_overdue"] == 0
    assert reconcile(at(over + 1), HERE)["runs_overdue"] == 1
    run = agent.runs.get()
    assert (run.stop_requested_at, run.error) == (at(over + 1), "over its time limit")
    assert reconcile(at(over + 2), HERE)["runs_overdue"] == 0


def test_a_run_over_its_time_limit_whose_worker_is_dead_ends(fleet: Fleet):
    agent = fleet.agent(timeout_seconds=60)
    running(fleet, agent, lease_until=at(30))
    for seconds in (10, 20, 30, 40, 90):
        reconcile(at(seconds), HERE)
    assert run_states(agent) == ["lost"]


# --- work and firings -----------------------------------------------------------------------


def test_firings_a_dead_beat_left_undecided_are_decided(fleet: Fleet):
    agent = fleet.agent()
    firing = fleet.firing(fleet.schedule(agent))
    assert reconcile(at(5), HERE)["firings_decided"] == 1
    firing.refresh_from_db()
    assert (firing.outcome, run_states(agent)) == ("started", ["pending"])


def test_work_that_waits_beside_a_free_slot_is_admitted(fleet: Fleet):
    agent = fleet.agent()
    Agent.objects.update(paused_at=NOON)
    fleet.ask(agent)
    Agent.objects.update(paused_at=None)
    assert reconcile(at(5), HERE)["work_admitted"] == 1


def test_a_retry_whose_time_has_come_is_admitted(fleet: Fleet):
    agent = fleet.agent(retries=1)
    fleet.finish(fleet.start(fleet.ask(agent)), "failed", NOON)
    assert reconcile(at(9), HERE)["work_admitted"] == 0
    assert reconcile(at(10), HERE)["work_admitted"] == 1


def test_a_sweep_that_finds_nothing_says_nothing(fleet: Fleet, caplog):
    fleet.agent()
    assert not any(reconcile(at(1), HERE).values())
    assert not caplog.records


# --- hints ----------------------------------------------------------------------------------


def test_a_hint_that_was_lost_is_sent_again(durable_fleet: Fleet, broker):
    agent = durable_fleet.agent(scale=2)
    for _ in range(2):
        durable_fleet.ask(agent)
    relay.drain(5)
    broker.client().flushall()
    assert reconcile(at(1), HERE)["hints_sent"] == 0
    assert reconcile(at(3), HERE)["hints_sent"] == 2
    relay.drain(5)
    assert relay.waiting_hints([agent.pk]) == {agent.pk: 2}
    assert set(Run.objects.values_list("hinted_at", flat=True)) == {at(3)}


def test_a_hint_that_still_waits_is_not_sent_again(durable_fleet: Fleet, broker):
    agent = durable_fleet.agent()
    durable_fleet.ask(agent)
    relay.drain(5)
    for seconds in (3, 13, 23):
        assert reconcile(at(seconds), HERE)["hints_sent"] == 0
    assert relay.waiting_hints([agent.pk]) == {agent.pk: 1}


def test_a_run_that_a_worker_has_started_needs_no_hint(durable_fleet: Fleet, broker):
    durable_fleet.start(durable_fleet.ask(durable_fleet.agent()))
    relay.drain(5)
    broker.client().flushall()
    assert reconcile(at(60), HERE)["hints_sent"] == 0


def test_an_unreachable_redis_is_asked_once_and_not_once_an_agent(durable_fleet: Fleet, broker):
    """Else the sweep is busy waiting for Redis, and dead workers keep their runs meanwhile."""
    broker.kill()
    for name in ("a", "b"):
        durable_fleet.ask(durable_fleet.agent(name))
    began = time.monotonic()
    reconcile(at(3), HERE)
    assert time.monotonic() - began < 9


# --- a worker from inside -------------------------------------------------------------------


def test_a_worker_that_ended_by_itself_is_not_called_dead(durable_fleet: Fleet):
    lease = Lease("worker", 1)
    lease.end()
    reconcile(datetime.now(UTC), this_host())
    worker = Worker.objects.get()
    assert (worker.state, worker.ended_at is not None) == ("stopped", True)


def test_a_new_lease_is_not_taken_from_a_worker_that_just_started(durable_fleet: Fleet):
    lease = Lease("worker", 1)
    try:
        reconcile(lease_module.utc_now(), this_host())
        wait_for(lambda: Worker.objects.get().state == "alive")
    finally:
        lease.end()
