"""Reruns that a run requests, retries of failed runs, and retries of lost runs."""

from typing import Any

import pytest

from agents_app.database.transactions import in_transaction
from agents_app.models import Agent, Run, Trigger
from agents_app.runs import dispatch, lifecycle
from tests.agents_app.fleet import NOON, Fleet, at, event_names, live_run, run_states, work_states

FINAL = ["succeeded", "failed", "timed_out", "stopped"]


# --- reruns ---------------------------------------------------------------------------------


def _scheduled(fleet: Fleet, **columns: Any) -> Agent:
    agent = fleet.agent(**columns)
    fleet.fire(fleet.schedule(agent))
    return agent


def _finish_with_rerun(fleet: Fleet, agent: Agent, now=NOON, **how: Any):
    return fleet.finish(fleet.start(agent.work_items.get(), now), now=now, wants_rerun=True, **how)


def test_a_scheduled_run_that_requests_a_rerun_runs_again_immediately(fleet: Fleet):
    agent = _scheduled(fleet)
    again = _finish_with_rerun(fleet, agent)
    assert again is not None
    assert (again.rerun, again.attempt) == (1, 1)
    assert run_states(agent) == ["succeeded", "pending"]
    assert work_states(agent) == ["admitted"]
    assert Run.objects.get(pk=again.run_id).trigger_detail == "rerun 1/10"


def test_a_rerun_starts_before_queued_work(fleet: Fleet):
    agent = _scheduled(fleet)
    scheduled, _ = agent.work_items.get(), fleet.enqueue(agent)
    again = fleet.finish(fleet.start(scheduled), wants_rerun=True)
    assert again is not None
    assert again.work_item_id == scheduled.pk
    assert work_states(agent) == ["admitted", "queued"]


def test_reruns_end_at_the_agents_limit(fleet: Fleet):
    agent = _scheduled(fleet, max_reruns=2)
    assert _finish_with_rerun(fleet, agent) is not None
    assert _finish_with_rerun(fleet, agent) is not None
    assert _finish_with_rerun(fleet, agent) is None
    assert run_states(agent) == ["succeeded"] * 3
    assert work_states(agent) == ["done"]


def test_a_limit_of_zero_reruns_is_respected(fleet: Fleet):
    agent = _scheduled(fleet, max_reruns=0)
    assert _finish_with_rerun(fleet, agent) is None


@pytest.mark.parametrize("trigger", [t for t in Trigger.values if t != "schedule"])
def test_only_runs_of_schedules_are_rerun(fleet: Fleet, trigger):
    agent = fleet.agent()
    job = fleet.start(fleet.enqueue(agent, trigger=trigger))
    assert fleet.finish(job, wants_rerun=True) is None
    assert work_states(agent) == ["done"]


def test_a_chain_of_reruns_ends_when_a_run_fails(fleet: Fleet):
    agent = _scheduled(fleet)
    _finish_with_rerun(fleet, agent)
    assert fleet.finish(fleet.start(agent.work_items.get()), "failed") is None
    assert run_states(agent) == ["succeeded", "failed"]
    assert work_states(agent) == ["failed"]


@pytest.mark.parametrize("change", [{"scale": 0}, {"removed_at": NOON}, {"paused_at": NOON}])
def test_a_chain_of_reruns_ends_when_the_agent_is_disabled_or_paused(fleet: Fleet, change):
    agent = _scheduled(fleet)
    _finish_with_rerun(fleet, agent)
    Agent.objects.update(**change)
    assert _finish_with_rerun(fleet, agent) is None
    assert run_states(agent) == ["succeeded", "succeeded"]
    assert work_states(agent) == ["done"]


def test_a_rerun_takes_the_definition_that_is_valid_now(fleet: Fleet):
    agent = _scheduled(fleet, timeout_seconds=60)
    job = fleet.start(agent.work_items.get())
    Agent.objects.update(revision=2, timeout_seconds=300)
    again = fleet.finish(job, now=at(1), wants_rerun=True, hand_over=True)
    assert again is not None
    assert (again.revision, again.timeout_seconds) == (2, 300)
    assert Run.objects.get(pk=again.run_id).deadline_at == at(301)


# --- retries --------------------------------------------------------------------------------


def test_a_failed_run_is_retried_with_a_delay_that_doubles(fleet: Fleet):
    agent = fleet.agent(retries=3)
    item = fleet.enqueue(agent)
    now = NOON
    for attempt, seconds in [(1, 10), (2, 20), (3, 40)]:
        job = fleet.start(item, now)
        assert job.attempt == attempt
        fleet.finish(job, "failed", now)
        item.refresh_from_db()
        assert (item.state, item.available_at) == ("queued", now + (at(seconds) - NOON))
        now = item.available_at
        assert dispatch.admit_waiting(agent.pk, now) == 1
    fleet.finish(fleet.start(item, now), "failed", now)
    assert run_states(agent) == ["failed"] * 4
    assert work_states(agent) == ["failed"]


def test_a_retry_is_a_new_run_with_the_next_attempt_number(fleet: Fleet):
    agent = fleet.agent(retries=1)
    item = fleet.enqueue(agent)
    fleet.finish(fleet.start(item), "timed_out")
    dispatch.admit_waiting(agent.pk, at(10))
    assert [(run.attempt, run.state) for run in agent.runs.order_by("id")] == [
        (1, "timed_out"),
        (2, "pending"),
    ]


@pytest.mark.parametrize(
    ("error", "attempts"),
    [("oom_killed: x", 4), ("image_missing: 'x'", 4), ("exit code 1", 6), ("not oom_killed: x", 6)],
)
@pytest.mark.fault("F39", "F42")
def test_a_run_that_will_end_in_the_same_way_is_retried_three_times(fleet: Fleet, error, attempts):
    agent = fleet.agent(retries=5)
    item, now = fleet.enqueue(agent), NOON
    while item.state != "failed":
        fleet.finish(fleet.start(item, now), "failed", now, error=error)
        item.refresh_from_db()
        now = item.available_at
        dispatch.admit_waiting(agent.pk, now)
    assert run_states(agent) == ["failed"] * attempts


@pytest.mark.parametrize("state", ["succeeded", "stopped"])
def test_a_run_that_succeeded_or_was_stopped_is_not_retried(fleet: Fleet, state):
    agent = fleet.agent(retries=3)
    fleet.finish(fleet.start(fleet.enqueue(agent)), state)
    assert work_states(agent) == ["done" if state == "succeeded" else "failed"]


def test_the_wait_before_a_retry_has_an_upper_bound():
    delays = [lifecycle.retry_delay_seconds(attempt) for attempt in range(1, 200)]
    assert delays == sorted(delays)
    assert (delays[0], delays[-1]) == (10, 3600)


# --- loss -----------------------------------------------------------------------------------


def _lose(fleet: Fleet, agent: Agent, now=NOON) -> None:
    job = fleet.start(agent.work_items.get(), now)
    assert in_transaction(
        lambda: lifecycle.lose_run(Run.objects.get(pk=job.run_id), now, "lost: its worker died")
    )


def test_a_lost_run_fails_its_work_unless_on_lost_is_retry(fleet: Fleet):
    agent = fleet.agent(on_lost="fail", retries=3)
    fleet.enqueue(agent)
    _lose(fleet, agent, at(40))
    run, item = agent.runs.get(), agent.work_items.get()
    assert (run.state, run.slot, run.finished_at) == ("lost", None, at(40))
    assert (item.state, item.reason) == ("failed", "lost: its worker died")
    assert event_names(run.pk)[-1] == "run.lost"


def test_a_lost_run_is_retried_immediately_if_on_lost_is_retry(fleet: Fleet):
    agent = fleet.agent(on_lost="retry")
    fleet.enqueue(agent)
    _lose(fleet, agent, at(40))
    assert dispatch.admit_waiting(agent.pk, at(40)) == 1
    assert [(run.attempt, run.state) for run in agent.runs.order_by("id")] == [
        (1, "lost"),
        (2, "pending"),
    ]


def test_a_run_that_is_lost_after_three_losses_is_dead(fleet: Fleet):
    agent = fleet.agent(on_lost="retry")
    fleet.enqueue(agent)
    for hour in range(4):
        dispatch.admit_waiting(agent.pk, at(hours=hour))
        _lose(fleet, agent, at(hours=hour))
    assert run_states(agent) == ["lost", "lost", "lost", "dead"]
    assert work_states(agent) == ["failed"]
    assert event_names(agent.runs.get(state="dead").pk)[-1] == "run.dead"


def test_losses_outside_the_window_do_not_count(fleet: Fleet):
    agent = fleet.agent(on_lost="retry")
    fleet.enqueue(agent)
    for hours in (0, 1, 2, 73.5):
        dispatch.admit_waiting(agent.pk, at(hours=hours))
        _lose(fleet, agent, at(hours=hours))
    assert run_states(agent) == ["lost"] * 4
    assert work_states(agent) == ["queued"]


def test_a_work_item_that_kills_its_workers_does_not_prevent_other_work(fleet: Fleet):
    agent = fleet.agent(on_lost="retry")
    poison, innocent = fleet.enqueue(agent), fleet.enqueue(agent)
    for _ in range(4):
        job = fleet.start(poison)
        lifecycle.lose_run(Run.objects.get(pk=job.run_id), NOON, "lost")
        dispatch.admit_waiting(agent.pk, NOON)
    poison.refresh_from_db()
    assert poison.state == "failed"
    assert live_run(innocent).state == "pending"


def test_a_run_that_has_ended_since_it_was_read_is_not_lost(fleet: Fleet):
    agent = fleet.agent(on_lost="retry")
    job = fleet.start(fleet.enqueue(agent))
    as_seen_before = Run.objects.get(pk=job.run_id)
    fleet.finish(job)
    assert lifecycle.lose_run(as_seen_before, at(1), "lost") is False
    assert (run_states(agent), work_states(agent)) == (["succeeded"], ["done"])
