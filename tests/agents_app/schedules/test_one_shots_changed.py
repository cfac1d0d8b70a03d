"""One-shots that users pause, resume or edit, also during their run, fire once."""

import pytest

from agents_app.schedules import due, edit, firings
from tests.agents_app.fleet import NOON, Fleet, at, run_states
from tests.agents_app.timely import create, outcomes, reread, run, start, states, tick

SOON = "in 10 minutes"
DUE = at(minutes=10)
AFTER = at(minutes=20)


# --- pause and resume -----------------------------------------------------------------------


def test_a_one_shot_resumed_before_its_fire_time_keeps_it(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    edit.pause(schedule, "ann", NOON)
    edit.resume(schedule, "ann", at(minutes=5))
    assert reread(schedule).next_fire_at == DUE


def test_a_one_shot_resumed_after_its_fire_time_fires_on_the_next_tick(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    edit.pause(schedule, "ann", NOON)
    tick(DUE)
    assert outcomes(schedule) == []
    edit.resume(schedule, "ann", at(days=3))
    tick(at(days=3, seconds=1))
    assert outcomes(schedule) == [(at(days=3), "started", "")]


def test_a_one_shot_paused_beyond_its_fire_time_fires_when_the_pause_ends(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    edit.pause(schedule, "ann", NOON, until=AFTER)
    tick(AFTER)
    assert outcomes(schedule) == [(AFTER, "started", "")]


def test_a_one_shot_resumed_to_fire_early_does_not_fire_again_at_its_time(fleet: Fleet):
    schedule = create(fleet.agent(scale=2), SOON)
    edit.pause(schedule, "ann", NOON)
    edit.resume(schedule, "ann", at(60), at_once=True)
    tick(at(60))
    assert reread(schedule).next_fire_at is None
    tick(DUE)
    assert outcomes(schedule) == [(at(60), "started", "")]


def test_a_one_shot_paused_during_its_run_ends_with_the_run(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    tick(DUE)
    job = start(fleet, schedule)
    edit.pause(schedule, "ann", DUE, "wait", until=at(hours=5))
    fleet.finish(job, now=AFTER)
    seen = reread(schedule)
    assert (seen.state, seen.pause_note, seen.pause_until) == ("completed", "", None)
    assert not edit.resume(schedule, "ann", AFTER)


@pytest.mark.parametrize("at_once", [False, True])
def test_a_one_shot_resumed_during_its_run_does_not_fire_again(fleet: Fleet, at_once):
    agent = fleet.agent(scale=2)
    schedule = create(agent, SOON)
    tick(DUE)
    job = start(fleet, schedule)
    edit.pause(schedule, "ann", DUE)
    assert edit.resume(schedule, "ann", at(minutes=11), at_once=at_once)
    tick(AFTER)
    assert run_states(agent) == ["running"]
    fleet.finish(job, now=AFTER)
    assert states(schedule) == ("completed", "")


def test_a_one_shot_paused_and_resumed_before_its_firing_is_decided_fires_once(fleet: Fleet):
    agent = fleet.agent(scale=2)
    schedule = create(agent, SOON)
    due.claim_due_schedules(DUE)
    edit.pause(schedule, "ann", DUE)
    edit.resume(schedule, "ann", DUE)
    tick(AFTER)
    assert outcomes(schedule) == [(DUE, "started", "")]


def test_a_one_shot_whose_firing_was_skipped_by_a_pause_fires_after_the_pause(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    due.claim_due_schedules(DUE)
    edit.pause(schedule, "ann", DUE)
    firings.decide_firings(DUE)
    assert states(schedule) == ("paused", "")
    edit.resume(schedule, "ann", AFTER)
    tick(AFTER)
    assert outcomes(schedule) == [(DUE, "skipped", "paused"), (AFTER, "started", "")]


# --- edits ----------------------------------------------------------------------------------


def test_a_one_shot_edited_during_its_run_fires_at_the_new_time(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    tick(DUE)
    job = start(fleet, schedule)
    edit.edit(schedule, {"text": "in 2 hours"}, "ann", DUE)
    fleet.finish(job, "failed", AFTER, error="exit code 1")
    assert states(schedule) == ("active", "")
    run(fleet, schedule, "succeeded", at(hours=2, minutes=10))
    assert states(schedule) == ("completed", "")
    assert reread(schedule).fire_count == 2


def test_a_recurring_schedule_changed_to_a_one_shot_during_its_run_fires_once_more(fleet: Fleet):
    schedule = create(fleet.agent(), "every hour")
    tick(at(hours=1))
    job = start(fleet, schedule)
    edit.edit(schedule, {"text": "in 30 minutes"}, "ann", at(hours=1))
    fleet.finish(job, now=at(hours=1, minutes=5))
    assert reread(schedule).next_fire_at == at(hours=1, minutes=30)
    run(fleet, schedule, "succeeded", at(hours=1, minutes=30))
    assert states(schedule) == ("completed", "")
    tick(at(days=1))
    assert len(outcomes(schedule)) == 2


def test_a_one_shot_changed_to_recurring_during_its_run_stays_active(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    tick(DUE)
    job = start(fleet, schedule)
    edit.edit(schedule, {"text": "0 * * * *"}, "ann", DUE)
    fleet.finish(job, "failed", AFTER, error="exit code 1")
    assert states(schedule) == ("active", "")
    assert reread(schedule).next_fire_at == at(hours=1)
