"""Every move of a run and its work: what is allowed, what follows, and what moves nothing."""

import pytest

from agents_app import dispatch, lifecycle
from agents_app.commit import in_transaction
from agents_app.models import Agent, Run, Tenant, Trigger, WorkItem
from tests.agents.fleet import NOON, Fleet, at, event_names, live_run, run_states, work_states

FINAL = ["succeeded", "failed", "timed_out", "stopped"]


# --- start ----------------------------------------------------------------------------------


def test_a_started_run_knows_its_worker_its_time_and_its_deadline(fleet: Fleet):
    agent = fleet.agent(timeout_seconds=90)
    worker = fleet.worker()
    job = fleet.start(fleet.ask(agent, prompt="p", context="c"), at(3), worker)
    run = Run.objects.get(pk=job.run_id)
    assert (run.state, run.worker, run.started_at) == ("running", worker, at(3))
    assert run.deadline_at == at(93)
    assert (job.prompt, job.context, job.timeout_seconds) == ("p", "c", 90)


def test_a_run_is_started_once_however_often_it_is_asked_for(fleet: Fleet):
    run = live_run(fleet.ask(fleet.agent()))
    workers = [fleet.worker() for _ in range(3)]
    jobs = [lifecycle.start(run.pk, worker.pk, NOON) for worker in workers]
    assert [job is not None for job in jobs] == [True, False, False]
    run.refresh_from_db()
    assert run.worker == workers[0]


def test_a_run_that_does_not_exist_is_not_started(fleet: Fleet):
    assert lifecycle.start(12345, fleet.worker().pk, NOON) is None


def test_a_stopped_run_is_not_started(fleet: Fleet):
    run = live_run(fleet.ask(fleet.agent()))
    dispatch.request_stop([run], NOON, "never mind")
    assert lifecycle.start(run.pk, fleet.worker().pk, NOON) is None


# --- finish ---------------------------------------------------------------------------------


@pytest.mark.parametrize("state", FINAL)
def test_a_finished_run_gives_its_slot_back_and_settles_its_work(fleet: Fleet, state):
    agent = fleet.agent()
    job = fleet.start(fleet.ask(agent))
    following = fleet.finish(job, state, at(7), error="why", exit_code=3, pid=99, output_bytes=5)
    run, item = Run.objects.get(pk=job.run_id), agent.work_items.get()
    assert following is None
    assert (run.state, run.slot, run.finished_at, run.error) == (state, None, at(7), "why")
    assert (run.exit_code, run.pid, run.output_bytes) == (3, 99, 5)
    assert item.state == ("done" if state == "succeeded" else "failed")
    assert (item.finished_at, item.reason) == (at(7), "why")


@pytest.mark.parametrize("state", FINAL)
def test_every_step_of_a_run_is_an_event(fleet: Fleet, state):
    job = fleet.start(fleet.ask(fleet.agent()))
    fleet.finish(job, state)
    assert event_names(job.run_id) == ["run.admitted", "run.started", f"run.{state}"]


def test_a_finished_run_admits_the_next_work_as_pending(fleet: Fleet):
    agent = fleet.agent()
    first, second = fleet.ask(agent), fleet.ask(agent)
    following = fleet.finish(fleet.start(first), now=at(1))
    assert following is not None
    run = live_run(second)
    assert (following.run_id, run.state, run.worker) == (run.pk, "pending", None)
    assert (run.hinted_at, run.started_at) == (at(1), None)


def test_a_handed_over_run_is_started_by_the_same_worker_in_the_same_moment(fleet: Fleet):
    agent = fleet.agent(timeout_seconds=60)
    first, second = fleet.ask(agent), fleet.ask(agent, prompt="next")
    following = fleet.finish(fleet.start(first), now=at(1), hand_over=True)
    assert following is not None
    run = live_run(second)
    assert (run.state, run.started_at, run.deadline_at) == ("running", at(1), at(61))
    assert run.worker == fleet.workers[0]
    assert (following.prompt, following.attempt) == ("next", 1)
    assert event_names(run.pk) == ["run.admitted", "run.started"]


def test_a_finish_under_a_cap_leaves_the_place_to_the_oldest_of_all(fleet: Fleet):
    Tenant.objects.update(scale=1)
    agent = fleet.agent()
    first, _ = fleet.ask(agent), fleet.ask(agent)
    assert fleet.finish(fleet.start(first), hand_over=True) is None
    assert work_states(agent) == ["done", "queued"]


def test_a_paused_agent_finishes_and_takes_nothing_new(fleet: Fleet):
    agent = fleet.agent()
    first, _ = fleet.ask(agent), fleet.ask(agent)
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


def test_a_worker_that_does_not_own_the_run_moves_nothing(fleet: Fleet):
    agent = fleet.agent()
    job = fleet.start(fleet.ask(agent))
    fleet.ask(agent)
    before = _snapshot()
    assert fleet.finish(job, worker_id=fleet.worker().pk, hand_over=True) is None
    assert _snapshot() == before
    assert event_names(job.run_id) == ["run.admitted", "run.started"]


def test_a_superseded_worker_moves_nothing(fleet: Fleet):
    """It was declared dead, its run lost and tried again elsewhere; then it comes back."""
    agent = fleet.agent(on_lost="retry")
    item = fleet.ask(agent)
    old, new = fleet.worker(), fleet.worker()
    stale = fleet.start(item, worker=old)
    lifecycle.lose(Run.objects.get(pk=stale.run_id), at(40), "lost")
    dispatch.admit_waiting(agent.pk, at(41))
    fleet.start(item, at(41), worker=new)
    before = _snapshot()
    assert fleet.finish(stale, now=at(50), worker_id=old.pk, hand_over=True) is None
    assert _snapshot() == before


def test_a_run_finishes_once(fleet: Fleet):
    agent = fleet.agent()
    job = fleet.start(fleet.ask(agent))
    fleet.finish(job, "succeeded")
    before = _snapshot()
    assert fleet.finish(job, "failed", at(1)) is None
    assert _snapshot() == before


@pytest.mark.parametrize(("old", "new"), [("succeeded", "running"), ("pending", "succeeded")])
def test_a_move_that_is_not_in_the_table_is_a_mistake_in_the_program(fleet: Fleet, old, new):
    with pytest.raises((AssertionError, KeyError)):
        lifecycle._move_run(1, old, new, {})


# --- reruns ---------------------------------------------------------------------------------


def _scheduled(fleet: Fleet, **columns: object) -> Agent:
    agent = fleet.agent(**columns)
    fleet.fire(fleet.schedule(agent))
    return agent


def _asks_again(fleet: Fleet, agent: Agent, now=NOON, **how: object):
    return fleet.finish(fleet.start(agent.work_items.get(), now), now=now, wants_rerun=True, **how)


def test_a_scheduled_run_that_asks_for_it_runs_again_at_once(fleet: Fleet):
    agent = _scheduled(fleet)
    again = _asks_again(fleet, agent)
    assert again is not None
    assert (again.rerun, again.attempt) == (1, 1)
    assert run_states(agent) == ["succeeded", "pending"]
    assert work_states(agent) == ["admitted"]
    assert Run.objects.get(pk=again.run_id).trigger_detail == "rerun 1/10"


def test_a_rerun_goes_before_other_work_that_waits(fleet: Fleet):
    agent = _scheduled(fleet)
    scheduled, _ = agent.work_items.get(), fleet.ask(agent)
    again = fleet.finish(fleet.start(scheduled), wants_rerun=True)
    assert again is not None
    assert again.work_item_id == scheduled.pk
    assert work_states(agent) == ["admitted", "queued"]


def test_reruns_end_at_the_agents_limit(fleet: Fleet):
    agent = _scheduled(fleet, max_reruns=2)
    assert _asks_again(fleet, agent) is not None
    assert _asks_again(fleet, agent) is not None
    assert _asks_again(fleet, agent) is None
    assert run_states(agent) == ["succeeded"] * 3
    assert work_states(agent) == ["done"]


def test_a_limit_of_no_reruns_is_kept(fleet: Fleet):
    agent = _scheduled(fleet, max_reruns=0)
    assert _asks_again(fleet, agent) is None


@pytest.mark.parametrize("trigger", [t for t in Trigger.values if t != "schedule"])
def test_only_runs_that_time_started_run_again(fleet: Fleet, trigger):
    agent = fleet.agent()
    job = fleet.start(fleet.ask(agent, trigger=trigger))
    assert fleet.finish(job, wants_rerun=True) is None
    assert work_states(agent) == ["done"]


def test_a_chain_of_reruns_ends_when_one_fails(fleet: Fleet):
    agent = _scheduled(fleet)
    _asks_again(fleet, agent)
    assert fleet.finish(fleet.start(agent.work_items.get()), "failed") is None
    assert run_states(agent) == ["succeeded", "failed"]
    assert work_states(agent) == ["failed"]


@pytest.mark.parametrize("change", [{"scale": 0}, {"removed_at": NOON}, {"paused_at": NOON}])
def test_a_chain_of_reruns_ends_when_the_agent_is_disabled_or_paused(fleet: Fleet, change):
    agent = _scheduled(fleet)
    _asks_again(fleet, agent)
    Agent.objects.update(**change)
    assert _asks_again(fleet, agent) is None
    assert run_states(agent) == ["succeeded", "succeeded"]
    assert work_states(agent) == ["done"]


def test_an_interval_counts_from_the_end_of_the_last_rerun(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, "1m", interval_seconds=60)
    fleet.fire(schedule)
    _asks_again(fleet, agent, at(10))
    schedule.refresh_from_db()
    assert schedule.last_completed_at is None
    fleet.finish(fleet.start(agent.work_items.get(), at(10)), now=at(30))
    schedule.refresh_from_db()
    assert (schedule.last_completed_at, schedule.next_fire_at) == (at(30), at(90))


def test_a_rerun_takes_the_definition_that_is_valid_now(fleet: Fleet):
    agent = _scheduled(fleet, timeout_seconds=60)
    job = fleet.start(agent.work_items.get())
    Agent.objects.update(revision=2, timeout_seconds=300)
    again = fleet.finish(job, now=at(1), wants_rerun=True, hand_over=True)
    assert again is not None
    assert (again.revision, again.timeout_seconds) == (2, 300)
    assert Run.objects.get(pk=again.run_id).deadline_at == at(301)


# --- retries --------------------------------------------------------------------------------


def test_a_failed_run_is_tried_again_later_each_time_twice_as_much_later(fleet: Fleet):
    agent = fleet.agent(retries=3)
    item = fleet.ask(agent)
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


def test_a_retry_is_a_run_of_its_own_with_the_next_attempt_number(fleet: Fleet):
    agent = fleet.agent(retries=1)
    item = fleet.ask(agent)
    fleet.finish(fleet.start(item), "timed_out")
    dispatch.admit_waiting(agent.pk, at(10))
    assert [(run.attempt, run.state) for run in agent.runs.order_by("id")] == [
        (1, "timed_out"),
        (2, "pending"),
    ]


@pytest.mark.parametrize("state", ["succeeded", "stopped"])
def test_what_succeeded_or_was_stopped_is_not_tried_again(fleet: Fleet, state):
    agent = fleet.agent(retries=3)
    fleet.finish(fleet.start(fleet.ask(agent)), state)
    assert work_states(agent) == ["done" if state == "succeeded" else "failed"]


def test_the_wait_before_a_retry_has_an_upper_bound():
    delays = [lifecycle.retry_delay_seconds(attempt) for attempt in range(1, 200)]
    assert delays == sorted(delays)
    assert (delays[0], delays[-1]) == (10, 3600)


def test_an_interval_counts_from_the_last_attempt(fleet: Fleet):
    agent = fleet.agent(retries=1)
    schedule = fleet.schedule(agent, "1m", interval_seconds=60, next_fire_at=at(60))
    fleet.fire(schedule)
    fleet.finish(fleet.start(agent.work_items.get()), "failed", at(5))
    schedule.refresh_from_db()
    assert schedule.next_fire_at == at(60)
    dispatch.admit_waiting(agent.pk, at(15))
    fleet.finish(fleet.start(agent.work_items.get()), "failed", at(50))
    schedule.refresh_from_db()
    assert schedule.next_fire_at == at(110)


# --- loss -----------------------------------------------------------------------------------


def _lose(fleet: Fleet, agent: Agent, now=NOON) -> None:
    job = fleet.start(agent.work_items.get(), now)
    assert in_transaction(
        lambda: lifecycle.lose(Run.objects.get(pk=job.run_id), now, "lost: its worker died")
    )


def test_a_lost_run_fails_its_work_unless_the_agent_says_retry(fleet: Fleet):
    agent = fleet.agent(on_lost="fail", retries=3)
    fleet.ask(agent)
    _lose(fleet, agent, at(40))
    run, item = agent.runs.get(), agent.work_items.get()
    assert (run.state, run.slot, run.finished_at) == ("lost", None, at(40))
    assert (item.state, item.reason) == ("failed", "lost: its worker died")
    assert event_names(run.pk)[-1] == "run.lost"


def test_a_lost_run_is_tried_again_at_once_where_the_agent_says_so(fleet: Fleet):
    agent = fleet.agent(on_lost="retry")
    fleet.ask(agent)
    _lose(fleet, agent, at(40))
    assert dispatch.admit_waiting(agent.pk, at(40)) == 1
    assert [(run.attempt, run.state) for run in agent.runs.order_by("id")] == [
        (1, "lost"),
        (2, "pending"),
    ]


def test_after_three_losses_the_next_is_death(fleet: Fleet):
    agent = fleet.agent(on_lost="retry")
    fleet.ask(agent)
    for hour in range(4):
        dispatch.admit_waiting(agent.pk, at(hours=hour))
        _lose(fleet, agent, at(hours=hour))
    assert run_states(agent) == ["lost", "lost", "lost", "dead"]
    assert work_states(agent) == ["failed"]
    assert event_names(agent.runs.get(state="dead").pk)[-1] == "run.dead"


def test_losses_of_long_ago_do_not_count(fleet: Fleet):
    agent = fleet.agent(on_lost="retry")
    fleet.ask(agent)
    for hours in (0, 1, 2, 73.5):
        dispatch.admit_waiting(agent.pk, at(hours=hours))
        _lose(fleet, agent, at(hours=hours))
    assert run_states(agent) == ["lost"] * 4
    assert work_states(agent) == ["queued"]


def test_a_poisonous_item_does_not_keep_others_from_running(fleet: Fleet):
    agent = fleet.agent(on_lost="retry")
    poison, innocent = fleet.ask(agent), fleet.ask(agent)
    for _ in range(4):
        job = fleet.start(poison)
        lifecycle.lose(Run.objects.get(pk=job.run_id), NOON, "lost")
        dispatch.admit_waiting(agent.pk, NOON)
    poison.refresh_from_db()
    assert poison.state == "failed"
    assert live_run(innocent).state == "pending"


def test_a_run_that_has_ended_meanwhile_is_not_lost(fleet: Fleet):
    agent = fleet.agent(on_lost="retry")
    job = fleet.start(fleet.ask(agent))
    as_seen_before = Run.objects.get(pk=job.run_id)
    fleet.finish(job)
    assert lifecycle.lose(as_seen_before, at(1), "lost") is False
    assert (run_states(agent), work_states(agent)) == (["succeeded"], ["done"])


# --- queued work ----------------------------------------------------------------------------


def test_only_queued_work_is_dropped_or_cleared(fleet: Fleet):
    agent = fleet.agent()
    admitted, queued, other = (fleet.ask(agent) for _ in range(3))
    assert not lifecycle.drop(admitted.pk, NOON, "no")
    assert not lifecycle.clear(admitted.pk, NOON, "no")
    assert lifecycle.drop(queued.pk, NOON, "told so")
    assert lifecycle.clear(other.pk, NOON, "told so")
    assert work_states(agent) == ["admitted", "dropped", "cleared"]


@pytest.mark.parametrize("was", ["dropped", "cleared"])
def test_work_can_be_restored_to_its_queue(fleet: Fleet, was):
    agent = fleet.agent()
    _, item = fleet.ask(agent), fleet.ask(agent)
    put_away = lifecycle.drop if was == "dropped" else lifecycle.clear
    assert put_away(item.pk, NOON, "told so")
    assert lifecycle.restore(item.pk, was, at(9))
    item.refresh_from_db()
    assert (item.state, item.reason, item.finished_at) == ("queued", "", None)


# --- the clock of schedules -----------------------------------------------------------------


def test_the_completion_of_a_cron_run_does_not_move_its_next_fire(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, "0 * * * *", next_fire_at=at(hours=1))
    fleet.fire(schedule)
    fleet.finish(fleet.start(agent.work_items.get()), now=at(30))
    schedule.refresh_from_db()
    assert (schedule.last_completed_at, schedule.next_fire_at) == (at(30), at(hours=1))


def test_a_manual_run_does_not_touch_the_schedule(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, "1m", interval_seconds=60, next_fire_at=at(60))
    fleet.finish(fleet.start(fleet.ask(agent)), now=at(30))
    schedule.refresh_from_db()
    assert (schedule.last_completed_at, schedule.next_fire_at) == (None, at(60))


def test_a_schedule_paused_while_its_run_went_on_stays_paused(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, "1m", interval_seconds=60)
    fleet.fire(schedule)
    job = fleet.start(agent.work_items.get())
    lifecycle.pause_schedule(schedule.pk, "hold")
    fleet.finish(job, now=at(30))
    schedule.refresh_from_db()
    assert (schedule.state, schedule.pause_note) == ("paused", "hold")
