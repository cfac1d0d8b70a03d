"""The state of the scheduler that the supervisor records when it stops."""

from datetime import UTC, datetime, timedelta

import pytest

from agents_app.models import RunEvent, Scheduler
from agents_app.runs import control
from agents_app.stack import machine_runs
from agents_app.worker import this_host
from tests.agents_app.fleet import Fleet, work_states


@pytest.fixture(autouse=True)
def keep_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor closes the connection of its thread; a test has one for all."""
    monkeypatch.setattr(machine_runs.connection, "close", lambda: None)


@pytest.fixture
def running(fleet: Fleet) -> Scheduler:
    control.start_scheduler(datetime.now(UTC))
    return Scheduler.objects.get()


def live_worker(fleet: Fleet, host: str) -> None:
    fleet.worker(host=host, lease_until=datetime.now(UTC) + timedelta(minutes=1))


def test_a_signal_drains_keeps_the_queue_and_ends_as_stopped(fleet: Fleet, running: Scheduler):
    live_worker(fleet, this_host())
    agent = fleet.agent()
    fleet.enqueue(agent), fleet.enqueue(agent)
    machine_runs.record_draining()
    running.refresh_from_db()
    assert running.state == "draining"
    assert work_states(agent) == ["admitted", "queued"]
    assert RunEvent.objects.get(name="scheduler.stopping").detail == "a signal: queues kept"
    machine_runs.record_stopped()
    running.refresh_from_db()
    assert running.state == "stopped"


def test_a_drain_that_a_person_began_is_not_recorded_as_one_by_a_signal(
    fleet: Fleet, running: Scheduler
):
    control.begin_drain("ann", datetime.now(UTC), keep_queue=True)
    machine_runs.record_draining()
    assert [event.detail for event in RunEvent.objects.filter(name="scheduler.stopping")] == [
        "ann: queues kept"
    ]


def test_a_host_that_stops_leaves_the_scheduler_to_the_workers_of_other_hosts(
    fleet: Fleet, running: Scheduler
):
    live_worker(fleet, "elsewhere")
    machine_runs.record_draining()
    machine_runs.record_stopped()
    running.refresh_from_db()
    assert running.state == "running"
