"""The sweep handles overdue runs, undecided firings, queued work and lost hints."""

import time
from datetime import UTC, datetime

import pytest

from agents_app.conf import CONF
from agents_app.events import relay
from agents_app.maintenance.reconcile import reconcile
from agents_app.models import Agent, Run, Worker
from agents_app.worker import lease as lease_module
from agents_app.worker.lease import Lease, this_host
from tests.agents_app.fleet import NOON, Fleet, at, run_states, running
from tests.parts.waiting import wait_for

HERE = "here"

# --- overdue runs ---------------------------------------------------------------------------


def test_a_stop_of_a_run_far_over_its_time_limit_is_requested(fleet: Fleet):
    agent = fleet.agent(timeout_seconds=60)
    running(fleet, agent)
    over = 60 + 3 * CONF.grace_seconds + 5
    assert reconcile(at(over), HERE)["runs_overdue"] == 0
    assert reconcile(at(over + 1), HERE)["runs_overdue"] == 1
    run = agent.runs.get()
    assert (run.stop_requested_at, run.error) == (at(over + 1), "over its time limit")
    assert reconcile(at(over + 2), HERE)["runs_overdue"] == 0


@pytest.mark.fault("F45")
def test_a_run_over_its_time_limit_whose_worker_is_dead_ends(fleet: Fleet):
    agent = fleet.agent(timeout_seconds=60)
    running(fleet, agent, lease_until=at(30))
    for seconds in (10, 20, 30, 40, 90):
        reconcile(at(seconds), HERE)
    assert run_states(agent) == ["lost"]


# --- work and firings -----------------------------------------------------------------------


def test_firings_that_a_dead_beat_left_undecided_are_decided(fleet: Fleet):
    agent = fleet.agent()
    firing = fleet.firing(fleet.schedule(agent))
    assert reconcile(at(5), HERE)["firings_decided"] == 1
    firing.refresh_from_db()
    assert (firing.outcome, run_states(agent)) == ("started", ["pending"])


def test_work_queued_despite_a_free_slot_is_admitted(fleet: Fleet):
    agent = fleet.agent()
    Agent.objects.update(paused_at=NOON)
    fleet.enqueue(agent)
    Agent.objects.update(paused_at=None)
    assert reconcile(at(5), HERE)["work_admitted"] == 1


def test_a_due_retry_is_admitted(fleet: Fleet):
    agent = fleet.agent(retries=1)
    fleet.finish(fleet.start(fleet.enqueue(agent)), "failed", NOON)
    assert reconcile(at(9), HERE)["work_admitted"] == 0
    assert reconcile(at(10), HERE)["work_admitted"] == 1


def test_a_sweep_without_repairs_logs_nothing(fleet: Fleet, caplog):
    fleet.agent()
    assert not any(reconcile(at(1), HERE).values())
    assert not caplog.records


# --- hints ----------------------------------------------------------------------------------


@pytest.mark.fault("F3")
def test_a_lost_hint_is_sent_again(durable_fleet: Fleet, broker):
    agent = durable_fleet.agent(scale=2)
    for _ in range(2):
        durable_fleet.enqueue(agent)
    relay.drain(5)
    broker.client().flushall()
    assert reconcile(at(1), HERE)["hints_sent"] == 0
    assert reconcile(at(3), HERE)["hints_sent"] == 2
    relay.drain(5)
    assert relay.waiting_hints([agent.pk]) == {agent.pk: 2}
    assert set(Run.objects.values_list("hinted_at", flat=True)) == {at(3)}


def test_a_hint_that_is_still_in_redis_is_not_sent_again(durable_fleet: Fleet, broker):
    agent = durable_fleet.agent()
    durable_fleet.enqueue(agent)
    relay.drain(5)
    for seconds in (3, 13, 23):
        assert reconcile(at(seconds), HERE)["hints_sent"] == 0
    assert relay.waiting_hints([agent.pk]) == {agent.pk: 1}


def test_no_hint_is_sent_for_a_started_run(durable_fleet: Fleet, broker):
    durable_fleet.start(durable_fleet.enqueue(durable_fleet.agent()))
    relay.drain(5)
    broker.client().flushall()
    assert reconcile(at(60), HERE)["hints_sent"] == 0


def test_an_unreachable_redis_is_queried_once_per_sweep_and_not_once_per_agent(
    durable_fleet: Fleet, broker
):
    """Otherwise the sweep waits for Redis while dead workers keep their runs."""
    broker.kill()
    for name in ("a", "b"):
        durable_fleet.enqueue(durable_fleet.agent(name))
    began = time.monotonic()
    reconcile(at(3), HERE)
    assert time.monotonic() - began < 2


# --- leases of workers ----------------------------------------------------------------------


def test_a_worker_that_ended_regularly_is_not_declared_dead(durable_fleet: Fleet):
    lease = Lease("worker", 1)
    lease.end()
    reconcile(datetime.now(UTC), this_host())
    worker = Worker.objects.get()
    assert (worker.state, worker.ended_at is not None) == ("stopped", True)


def test_a_worker_that_has_just_started_keeps_its_lease(durable_fleet: Fleet):
    lease = Lease("worker", 1)
    try:
        reconcile(lease_module.utc_now(), this_host())
        wait_for(lambda: Worker.objects.get().state == "alive")
    finally:
        lease.end()
