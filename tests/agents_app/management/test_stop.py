"""Runs are ended by name; without a name the scheduler shuts down, in order and restorable."""

import os
import signal
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest

from agents_app.conf import CONF
from agents_app.errors import SchedulerShutdownError
from agents_app.installation.up_lock import DRAIN_SIGNAL, hold_lock, running_up
from agents_app.models import Run, Scheduler, Worker
from agents_app.runs import shutdown
from tests.agents_app.fleet import Fleet, live_run, run_states, work_states
from tests.agents_app.management.calling import call


def _alive(fleet: Fleet) -> Worker:
    return fleet.worker(lease_until=datetime.now(UTC) + timedelta(minutes=1))


# --- runs -----------------------------------------------------------------------------------


def test_a_pending_run_ends_on_the_spot(durable_fleet: Fleet):
    run = live_run(durable_fleet.enqueue(durable_fleet.agent()))
    said = call("stop", str(run.pk), "--timeout", "5", "--json")
    assert said.json == {"runs": [run.pk], "ended": True}
    run.refresh_from_db()
    assert run.state == "stopped" and run.error.startswith("stopped by ")


def test_a_running_run_is_stopped_once(durable_fleet: Fleet):
    run_id = durable_fleet.start(durable_fleet.enqueue(durable_fleet.agent())).run_id
    assert call("stop", str(run_id)).out == f"run {run_id} is being stopped\n"
    first = Run.objects.get(pk=run_id).stop_requested_at
    assert first is not None
    assert call("stop", str(run_id)).out == f"run {run_id} was already being stopped\n"
    assert Run.objects.get(pk=run_id).stop_requested_at == first


def test_a_run_that_has_ended_cannot_be_stopped(durable_fleet: Fleet):
    job = durable_fleet.start(durable_fleet.enqueue(durable_fleet.agent()))
    durable_fleet.finish(job)
    said = call("stop", str(job.run_id))
    assert (said.code, said.err) == (1, f"run {job.run_id} has ended already: succeeded\n")


def test_all_runs_of_an_agent_are_told_and_its_queue_is_left_alone(durable_fleet: Fleet):
    agent, other = durable_fleet.agent(scale=2), durable_fleet.agent("other")
    items = [durable_fleet.enqueue(agent) for _ in range(3)]
    theirs = durable_fleet.start(durable_fleet.enqueue(other)).run_id
    told = [durable_fleet.start(item).run_id for item in items[:2]]
    said = call("stop", "reporter")
    assert said.out == "reporter: stopping 2 runs\n"
    assert said.err.startswith(
        "1 work item in the queue may take the free slots (manage.py pause reporter"
    )
    asked = Run.objects.filter(stop_requested_at__isnull=False).order_by("pk")
    assert list(asked.values_list("pk", flat=True)) == told
    assert theirs not in told
    assert work_states(agent)[2] == "queued"


def test_a_run_that_does_not_end_in_time_is_an_error(durable_fleet: Fleet):
    durable_fleet.start(durable_fleet.enqueue(durable_fleet.agent()))
    said = call("stop", "reporter", "--timeout", "0.1")
    assert (said.code, said.err) == (1, "after 0.1 s 1 run is still running\n")


def test_keeping_the_queue_makes_no_sense_for_runs(durable_fleet: Fleet):
    run = live_run(durable_fleet.enqueue(durable_fleet.agent()))
    said = call("stop", "reporter", "--keep-queue")
    assert said.code == 1 and said.err.startswith("--keep-queue applies to a shutdown")
    run.refresh_from_db()
    assert run.state == "pending"


# --- the scheduler --------------------------------------------------------------------------


def test_a_shutdown_clears_queues_and_pending_runs_then_stops(durable_fleet: Fleet):
    agent = durable_fleet.agent()
    for _ in range(3):
        durable_fleet.enqueue(agent)
    said = call("stop", "--json")
    assert said.json == {"state": "stopped", "cleared": 3}
    assert work_states(agent) == ["cleared", "cleared", "cleared"]
    assert run_states(agent) == ["stopped"]
    assert Scheduler.objects.get().state == "stopped"
    assert call("queue", "restore").out == "restored 3 work items\n"


def test_with_the_queue_kept_everything_keeps_its_place(durable_fleet: Fleet):
    agent = durable_fleet.agent()
    for _ in range(2):
        durable_fleet.enqueue(agent)
    assert call("stop", "--keep-queue").out == "stopped\n"
    assert work_states(agent) == ["admitted", "queued"]
    assert run_states(agent) == ["pending"]


def test_a_shutdown_waits_for_what_runs(durable_fleet: Fleet, monkeypatch):
    job = durable_fleet.start(
        durable_fleet.enqueue(durable_fleet.agent()), worker=_alive(durable_fleet)
    )
    seen: list[str] = []

    def meanwhile(_: float) -> None:
        seen.append(Scheduler.objects.get().state)
        durable_fleet.finish(job)

    monkeypatch.setattr("agents_app.runs.shutdown.sleep", meanwhile)
    said = call("stop")
    assert (said.code, said.out) == (0, "stopped\n")
    assert seen == ["draining"]
    assert Run.objects.get().state == "succeeded"


def test_at_its_time_limit_it_says_how_many_still_run(durable_fleet: Fleet):
    agent, worker = durable_fleet.agent(scale=2), _alive(durable_fleet)
    for _ in range(2):
        durable_fleet.start(durable_fleet.enqueue(agent), worker=worker)
    said = call("stop", "--timeout", "0.1")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("after 0.1 s 2 runs are still running: ")
    assert "the drain continues" in said.err
    assert Scheduler.objects.get().state == "draining"
    with pytest.raises(SchedulerShutdownError) as caught:
        shutdown.wait_until_idle(0, lambda _: None)
    assert (caught.value.timed_out, caught.value.running_job_count) == (True, 2)


@pytest.fixture
def told():
    """The signals that reach this process, which holds the lock as `up` does."""
    received: list[int] = []
    before = signal.signal(DRAIN_SIGNAL, lambda number, _: received.append(number))
    yield received
    signal.signal(DRAIN_SIGNAL, before)


def test_it_ends_up_and_waits_until_it_is_gone(durable_fleet: Fleet, monkeypatch, told):
    held = ExitStack()
    held.enter_context(hold_lock(CONF.data))

    def meanwhile(_: float) -> None:
        assert Scheduler.objects.get().state == "draining"
        held.close()

    monkeypatch.setattr("agents_app.runs.shutdown.sleep", meanwhile)
    assert call("stop").out == "stopped\n"
    assert running_up(CONF.data) is None
    assert told == [DRAIN_SIGNAL]
    assert Scheduler.objects.get().state == "stopped"


def test_a_second_stop_does_not_end_the_runs_that_the_first_lets_finish(durable_fleet: Fleet, told):
    """Guard: `up` is asked with a signal of its own. A second SIGTERM would stop the runs."""
    worker = _alive(durable_fleet)
    durable_fleet.start(durable_fleet.enqueue(durable_fleet.agent()), worker=worker)
    with hold_lock(CONF.data):
        assert [call("stop", "--timeout", "0").code for _ in range(2)] == [1, 1]
    assert told == [DRAIN_SIGNAL] * 2


@pytest.mark.usefixtures("told")
def test_an_up_that_does_not_exit_is_an_error(durable_fleet: Fleet, monkeypatch):
    monkeypatch.setattr(shutdown, "CLOSE_SECONDS", 0.1)
    with hold_lock(CONF.data):
        said = call("stop")
    assert (said.code, said.out) == (1, "")
    assert said.err.endswith(f"or end it with kill {os.getpid()}\n")


def test_runs_of_workers_that_are_gone_do_not_hold_it_up(durable_fleet: Fleet):
    agent = durable_fleet.agent(scale=2)
    now = datetime.now(UTC)
    silent = durable_fleet.worker(lease_until=now - timedelta(seconds=1))
    ended = durable_fleet.worker(lease_until=now + timedelta(minutes=1), ended_at=now)
    for worker in (silent, ended):
        durable_fleet.start(durable_fleet.enqueue(agent), worker=worker)
    assert call("stop").out == "stopped\n"


def test_while_it_stops_nothing_new_starts(durable_fleet: Fleet):
    agent = durable_fleet.agent(scale=2)
    durable_fleet.start(durable_fleet.enqueue(agent), worker=_alive(durable_fleet))
    call("stop", "--timeout", "0")
    assert "queued: the scheduler is draining" in call("run", "reporter").out
