"""Cancelling schedules, and retrying their failed or skipped work."""

import pytest
from django.db import transaction

from agents_app.errors import Refused
from agents_app.models import Agent
from agents_app.schedules import due, edit
from tests.agents_app.fleet import NOON, Fleet, at, work_states
from tests.agents_app.timely import (
    create,
    event_details,
    last_work,
    outcomes,
    reread,
    run,
    runs_of,
    start,
    states,
    tick,
)

# --- cancel ---------------------------------------------------------------------------------


def test_a_cancel_drops_queued_work_and_skips_undecided_firings(fleet: Fleet):
    agent = fleet.agent()
    schedule = create(agent, "* * * * *", overlap="queue")
    tick(at(60)), tick(at(120)), tick(at(180))
    job = fleet.start(agent.work_items.earliest("id"))
    due.claim_due_schedules(at(240))
    assert edit.cancel(schedule, "ann", at(241)) == 3
    assert [outcome for _, outcome, _ in outcomes(schedule)] == [
        *("started", "queued", "queued", "skipped")
    ]
    assert outcomes(schedule)[-1] == (at(240), "skipped", "disabled")
    assert work_states(agent) == ["admitted", "dropped", "dropped"]
    assert last_work(schedule).reason == "its schedule was canceled"
    assert fleet.finish(job, now=at(242)) is None
    seen = reread(schedule)
    assert (seen.state, seen.next_fire_at) == ("canceled", None)
    assert event_details("schedule.canceled") == ["schedule: ann"]


def test_a_canceled_schedule_never_fires_again(fleet: Fleet):
    schedule = create(fleet.agent(), "* * * * *")
    edit.cancel(schedule, "ann", NOON)
    tick(at(days=1))
    assert outcomes(schedule) == []


def test_a_cancel_does_not_drop_other_work_of_the_agent(fleet: Fleet):
    agent = fleet.agent()
    fleet.enqueue(agent), fleet.enqueue(agent)
    assert edit.cancel(create(agent, "@daily"), "ann", NOON) == 0
    assert work_states(agent) == ["admitted", "queued"]


def test_cancelling_twice_is_refused(fleet: Fleet):
    schedule = create(fleet.agent(), "@daily")
    edit.cancel(schedule, "ann", NOON)
    with pytest.raises(Refused, match="canceled already"):
        edit.cancel(schedule, "ann", NOON)


@pytest.mark.parametrize("state", ["paused", "completed", "failed"])
def test_a_schedule_that_does_not_fire_can_be_canceled(fleet: Fleet, state):
    schedule = fleet.schedule(fleet.agent(), state=state)
    assert edit.cancel(schedule, "ann", NOON) == 0
    assert reread(schedule).state == "canceled"


# --- retry ----------------------------------------------------------------------------------


def test_a_retry_enqueues_the_last_failed_work(fleet: Fleet):
    schedule = create(fleet.agent(), "0 * * * *", prompt="sums")
    run(fleet, schedule, "succeeded", at(hours=1))
    run(fleet, schedule, "failed", at(hours=2))
    edit.edit(schedule, {"prompt": "other"}, "ann", at(hours=2))
    item = edit.retry(schedule, "ann", at(hours=2, minutes=1))
    assert (item.prompt, item.trigger, item.state) == ("sums", "schedule", "admitted")
    assert item.requested_by == "ann, retry of schedule 0"
    assert (reread(schedule).next_fire_at, reread(schedule).fire_count) == (at(hours=3), 2)
    assert event_details("schedule.retried") == ["0: ann"]


def test_a_skipped_firing_can_be_retried(fleet: Fleet):
    agent = fleet.agent()
    busy = fleet.start(fleet.enqueue(agent))
    schedule = create(agent, "0 * * * *", prompt="sums")
    tick(at(hours=1))
    fleet.finish(busy, now=at(hours=1))
    assert edit.retry(schedule, "ann", at(hours=1)).prompt == "sums"


def test_a_retry_without_failed_work_is_refused(fleet: Fleet):
    schedule = create(fleet.agent(), "0 * * * *")
    run(fleet, schedule, "succeeded", at(hours=1))
    with pytest.raises(Refused, match="no work of 0 failed and no firing was skipped"):
        edit.retry(schedule, "ann", at(hours=1))


def test_a_retried_one_shot_is_active_and_ends_with_the_retry(fleet: Fleet):
    schedule = create(fleet.agent(), "in 1 minute")
    run(fleet, schedule, "failed", at(60), "exit code 1")
    edit.retry(schedule, "ann", at(120))
    assert states(schedule) == ("active", "")
    tick(at(180))
    fleet.finish(start(fleet, schedule, at(180)), now=at(181))
    assert states(schedule) == ("completed", "")
    assert schedule.firings.count() == 1


def test_a_retried_one_shot_does_not_fire_again_at_its_time(fleet: Fleet):
    schedule = create(fleet.agent(scale=2), "in 1 hour")
    edit.pause(schedule, "ann", NOON)
    edit.resume(schedule, "ann", NOON, at_once=True)
    run(fleet, schedule, "failed", at(60), "exit code 1")
    edit.retry(schedule, "ann", at(120))
    tick(at(hours=1))
    assert schedule.firings.count() == 1


def test_a_schedule_paused_by_failures_is_active_again_after_a_retry(fleet: Fleet):
    schedule = create(fleet.agent(), "0 * * * *", pause_after_failures=1)
    run(fleet, schedule, "failed", at(hours=1), "exit code 1")
    assert states(schedule)[0] == "paused"
    edit.retry(schedule, "ann", at(hours=5, minutes=1))
    seen = reread(schedule)
    assert (seen.state, seen.failure_count, seen.next_fire_at) == ("active", 0, at(hours=6))


def test_a_retry_that_the_agent_refuses_changes_nothing(fleet: Fleet):
    schedule = create(fleet.agent(), "in 1 minute")
    run(fleet, schedule, "failed", at(60), "exit code 1")
    Agent.objects.update(scale=0)
    with pytest.raises(Refused, match="the agent's scale is 0"), transaction.atomic():
        edit.retry(schedule, "ann", at(120))
    assert states(schedule) == ("failed", "exit code 1")


def test_work_that_was_retried_with_success_is_not_retried_again(fleet: Fleet):
    schedule = create(fleet.agent(), "in 1 minute")
    run(fleet, schedule, "failed", at(60), "exit code 1")
    as_bob_saw_it = reread(schedule)
    edit.retry(schedule, "ann", at(120))
    fleet.finish(start(fleet, schedule, at(120)), now=at(121))
    with pytest.raises(Refused, match="no work of in-1-minute failed"):
        edit.retry(as_bob_saw_it, "bob", at(122))
    assert runs_of(schedule) == ["failed", "succeeded"]


def test_a_canceled_schedule_is_not_retried(fleet: Fleet):
    schedule = create(fleet.agent(), "in 1 minute")
    run(fleet, schedule, "failed", at(60), "exit code 1")
    edit.cancel(schedule, "ann", at(90))
    with pytest.raises(Refused, match="a canceled schedule cannot be retried: create a new one"):
        edit.retry(schedule, "ann", at(120))
