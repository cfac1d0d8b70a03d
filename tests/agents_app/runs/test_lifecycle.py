"""The moves of runs and work items: allowed moves, their effects, and moves that change no row."""

import pytest

from agents_app.models import Agent, Run, Tenant, WorkItem
from agents_app.runs import dispatch, lifecycle
from tests.agents_app.fleet import NOON, Fleet, at, event_names, live_run, work_states

FINAL = ["succeeded", "failed", "timed_out", "stopped"]


# --- start ----------------------------------------------------------------------------------


def test_a_started_run_has_a_worker_a_start_time_and_a_deadline(fleet: Fleet):
    agent = fleet.agent(timeout_seconds=90)
    worker = fleet.worker()
    job = fleet.start(fleet.enqueue(agent, prompt="p", context="c"), at(3), worker)
    run = Run.objects.get(pk=job.run_id)
    assert (run.state, run.worker, run.started_at) == ("running", worker, at(3))
    assert run.deadline_at == at(93)
    assert (job.prompt, job.context, job.timeout_seconds) == ("p", "c", 90)


def test_a_run_is_started_once_by_repeated_calls(fleet: Fleet):
    run = live_run(fleet.enqueue(fleet.agent()))
    workers = [fleet.worker() for _ in range(3)]
    jobs = [lifecycle.start_run(run.pk, worker.pk, NOON) for worker in workers]
    assert [job is not None for job in jobs] == [True, False, False]
    run.refresh_from_db()
    assert run.worker == workers[0]


def test_a_run_that_does_not_exist_is_not_started(fleet: Fleet):
    assert lifecycle.start_run(12345, fleet.worker().pk, NOON) is None


@pytest.mark.fault("F21", "F22")
def test_a_worker_that_was_declared_dead_starts_no_run(fleet: Fleet):
    """Guard: the worker is alive and reaches the database again. A run that it starts is lost when
    it reads its own row."""
    run = live_run(fleet.enqueue(fleet.agent()))
    assert lifecycle.start_run(run.pk, fleet.worker(ended_at=NOON).pk, NOON) is None
    run.refresh_from_db()
    assert run.state == "pending"
    assert lifecycle.start_run(run.pk, fleet.worker().pk, NOON) is not None


def test_a_stopped_run_is_not_started(fleet: Fleet):
    run = live_run(fleet.enqueue(fleet.agent()))
    dispatch.request_stop([run], NOON, "never mind")
    assert lifecycle.start_run(run.pk, fleet.worker().pk, NOON) is None


# --- finish ---------------------------------------------------------------------------------


@pytest.mark.parametrize("state", FINAL)
def test_a_finished_run_gives_its_slot_back_and_settles_its_work(fleet: Fleet, state):
    agent = fleet.agent()
    job = fleet.start(fleet.enqueue(agent))
    following = fleet.finish(job, state, at(7), error="why", exit_code=3, pid=99, output_bytes=5)
    run, item = Run.objects.get(pk=job.run_id), agent.work_items.get()
    assert following is None
    assert (run.state, run.slot, run.finished_at, run.error) == (state, None, at(7), "why")
    assert (run.exit_code, run.pid, run.output_bytes) == (3, 99, 5)
    assert item.state == ("done" if state == "succeeded" else "failed")
    assert (item.finished_at, item.reason) == (at(7), "why")


@pytest.mark.parametrize("state", FINAL)
def test_every_step_of_a_run_is_an_event(fleet: Fleet, state):
    job = fleet.start(fleet.enqueue(fleet.agent()))
    fleet.finish(job, state)
    assert event_names(job.run_id) == ["run.admitted", "run.started", f"run.{state}"]


def test_a_finished_run_admits_the_next_work_as_pending(fleet: Fleet):
    agent = fleet.agent()
    first, second = fleet.enqueue(agent), fleet.enqueue(agent)
    following = fleet.finish(fleet.start(first), now=at(1))
    assert following is not None
    run = live_run(second)
    assert (following.run_id, run.state, run.worker) == (run.pk, "pending", None)
    assert (run.hinted_at, run.started_at) == (at(1), None)


def test_a_handed_over_run_is_started_by_the_same_worker_in_the_same_moment(fleet: Fleet):
    agent = fleet.agent(timeout_seconds=60)
    first, second = fleet.enqueue(agent), fleet.enqueue(agent, prompt="next")
    following = fleet.finish(fleet.start(first), now=at(1), hand_over=True)
    assert following is not None
    run = live_run(second)
    assert (run.state, run.started_at, run.deadline_at) == ("running", at(1), at(61))
    assert run.worker == fleet.workers[0]
    assert (following.prompt, following.attempt) == ("next", 1)
    assert event_names(run.pk) == ["run.admitted", "run.started"]


def test_under_a_cap_a_finished_run_leaves_its_slot_to_the_oldest_work_of_all_agents(fleet: Fleet):
    Tenant.objects.update(scale=1)
    agent = fleet.agent()
    first, _ = fleet.enqueue(agent), fleet.enqueue(agent)
    assert fleet.finish(fleet.start(first), hand_over=True) is None
    assert work_states(agent) == ["done", "queued"]


def test_a_paused_agent_finishes_its_run_and_starts_no_other(fleet: Fleet):
    agent = fleet.agent()
    first, _ = fleet.enqueue(agent), fleet.enqueue(agent)
    job = fleet.start(first)
    Agent.objects.update(paused_at=NOON)
    assert fleet.finish(job, hand_over=True) is None
    assert work_states(agent) == ["done", "queued"]


# --- fencing --------------------------------------------------------------------------------


def _snapshot() -> list[object]:
    return [
        list(Run.objects.order_by("id").values()),
        list(WorkItem.objects.order_by("id").values()),
    ]


def test_a_worker_that_does_not_own_the_run_changes_no_row(fleet: Fleet):
    agent = fleet.agent()
    job = fleet.start(fleet.enqueue(agent))
    fleet.enqueue(agent)
    before = _snapshot()
    assert fleet.finish(job, worker_id=fleet.worker().pk, hand_over=True) is None
    assert _snapshot() == before
    assert event_names(job.run_id) == ["run.admitted", "run.started"]


def test_a_superseded_worker_changes_no_row(fleet: Fleet):
    """The worker was declared dead and its run was lost and retried; then the worker reports."""
    agent = fleet.agent(on_lost="retry")
    item = fleet.enqueue(agent)
    old, new = fleet.worker(), fleet.worker()
    stale = fleet.start(item, worker=old)
    lifecycle.lose_run(Run.objects.get(pk=stale.run_id), at(40), "lost")
    dispatch.admit_waiting(agent.pk, at(41))
    fleet.start(item, at(41), worker=new)
    before = _snapshot()
    assert fleet.finish(stale, now=at(50), worker_id=old.pk, hand_over=True) is None
    assert _snapshot() == before


def test_a_run_finishes_once(fleet: Fleet):
    agent = fleet.agent()
    job = fleet.start(fleet.enqueue(agent))
    fleet.finish(job, "succeeded")
    before = _snapshot()
    assert fleet.finish(job, "failed", at(1)) is None
    assert _snapshot() == before


@pytest.mark.parametrize(("old", "new"), [("succeeded", "running"), ("pending", "succeeded")])
def test_a_move_that_is_not_in_the_table_raises_an_assertion(fleet: Fleet, old, new):
    with pytest.raises((AssertionError, KeyError)):
        lifecycle._move_run(1, old, new, {})


# --- queued work ----------------------------------------------------------------------------


def test_only_queued_work_is_dropped_or_cleared(fleet: Fleet):
    agent = fleet.agent()
    admitted, queued, other = (fleet.enqueue(agent) for _ in range(3))
    assert not lifecycle.drop_work(admitted.pk, NOON, "no")
    assert not lifecycle.clear_work(admitted.pk, NOON, "no")
    assert lifecycle.drop_work(queued.pk, NOON, "requested")
    assert lifecycle.clear_work(other.pk, NOON, "requested")
    assert work_states(agent) == ["admitted", "dropped", "cleared"]


@pytest.mark.parametrize("was", ["dropped", "cleared"])
def test_work_can_be_restored_to_its_queue(fleet: Fleet, was):
    agent = fleet.agent()
    _, item = fleet.enqueue(agent), fleet.enqueue(agent)
    put_away = lifecycle.drop_work if was == "dropped" else lifecycle.clear_work
    assert put_away(item.pk, NOON, "requested")
    assert lifecycle.restore_work(item.pk, was, at(9))
    item.refresh_from_db()
    assert (item.state, item.reason, item.finished_at) == ("queued", "", None)
