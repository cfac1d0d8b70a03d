"""Pauses of schedules: until a time, after failures; and the next fire time after a pause."""

import pytest

from agents_app.errors import Refused
from agents_app.models import Schedule
from agents_app.schedules import due, edit
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.timely import create, event_details, outcomes, reread, run, states, tick

# --- pauses ---------------------------------------------------------------------------------


def test_a_pause_until_a_time_ends_by_itself(fleet: Fleet):
    schedule = create(fleet.agent(), "0 * * * *")
    assert edit.pause(schedule, "ann", NOON, "holiday", until=at(hours=3, minutes=30))
    tick(at(hours=2))
    seen = reread(schedule)
    assert (seen.state, seen.pause_note) == ("paused", "holiday")
    assert due.next_due_at() == at(hours=3, minutes=30)
    tick(at(hours=3, minutes=30))
    seen = reread(schedule)
    assert (seen.state, seen.pause_note, seen.pause_until) == ("active", "", None)
    assert (seen.next_fire_at, outcomes(schedule)) == (at(hours=4), [])
    assert event_details("schedule.paused") == ["0: ann: holiday"]


def test_a_pause_without_an_end_lasts(fleet: Fleet):
    schedule = create(fleet.agent(), "0 * * * *")
    edit.pause(schedule, "ann", NOON)
    assert due.next_due_at() is None
    tick(at(days=1000))
    assert states(schedule) == ("paused", "")


def test_a_pause_until_a_time_that_is_past_is_refused(fleet: Fleet):
    schedule = create(fleet.agent(), "0 * * * *")
    with pytest.raises(Refused, match="12:00 UTC is in the past: give a time in the future"):
        edit.pause(schedule, "ann", NOON, until=NOON)
    assert states(schedule) == ("active", "")


def test_a_pause_that_a_user_ended_is_not_ended_again(fleet: Fleet):
    schedule = create(fleet.agent(), "0 * * * *")
    edit.pause(schedule, "ann", NOON, until=at(60))
    edit.resume(schedule, "bob", at(30))
    edit.pause(schedule, "bob", at(40), "longer")
    assert due.resume_expired_pauses(at(60)) == 0
    assert states(schedule) == ("paused", "longer")


def test_an_unreadable_schedule_whose_pause_ends_does_not_delay_others(fleet: Fleet):
    agent = fleet.agent()
    broken, fine = create(agent, "* * * * *", name="broken"), create(agent, "0 * * * *")
    for schedule in (broken, fine):
        edit.pause(schedule, "ann", NOON, until=at(90))
    Schedule.objects.filter(pk=broken.pk).update(expression="every now and then")
    tick(at(90)), tick(at(91))
    assert reread(fine).state == "active"
    assert reread(broken).state == "paused"
    assert "every now and then" in reread(broken).pause_note
    assert due.next_due_at() == at(hours=1)


@pytest.mark.parametrize(
    ("text", "resumed_at", "upcoming"),
    [
        # In the future when the schedule is resumed: the pause has no effect.
        ("every 2 hours", at(hours=1), at(hours=2)),
        ("2h", at(hours=1), at(hours=2)),
        ("0 18 * * *", at(hours=1), at(hours=6)),
        # Passed during the pause: not immediately.
        ("every 2 hours", at(hours=5), at(hours=6)),
        ("2h", at(hours=5), at(hours=7)),
        ("0 18 * * *", at(hours=7), at(hours=30)),
        ("every 2 hours", at(days=365, hours=1), at(days=365, hours=2)),
    ],
)
def test_a_resumed_schedule_waits_for_its_next_regular_fire_time(
    fleet: Fleet, text, resumed_at, upcoming
):
    schedule = create(fleet.agent(), text)
    if text == "2h":
        run(fleet, schedule, "succeeded", NOON)
    edit.pause(schedule, "ann", at(1))
    edit.resume(schedule, "ann", resumed_at)
    assert reread(schedule).next_fire_at == upcoming


def test_a_schedule_resumed_with_at_once_fires_immediately(fleet: Fleet):
    schedule = create(fleet.agent(), "0 18 * * *")
    edit.pause(schedule, "ann", NOON)
    edit.resume(schedule, "ann", at(60), at_once=True)
    tick(at(61))
    assert outcomes(schedule) == [(at(60), "started", "")]
    assert reread(schedule).next_fire_at == at(hours=6)


# --- failures -------------------------------------------------------------------------------


def _fail_runs(fleet: Fleet, schedule: Schedule, *hours: int, state: str = "failed") -> None:
    for hour in hours:
        run(fleet, schedule, state, at(hours=hour), "" if state == "succeeded" else "exit code 9")


def test_a_schedule_is_paused_after_its_limit_of_failures_in_a_row(fleet: Fleet):
    schedule = create(fleet.agent(), "0 * * * *", pause_after_failures=3)
    _fail_runs(fleet, schedule, 1, 2)
    assert (reread(schedule).state, reread(schedule).failure_count) == ("active", 2)
    _fail_runs(fleet, schedule, 3, state="timed_out")
    assert states(schedule) == ("paused", "paused after 3 failures: exit code 9")
    tick(at(hours=9))
    assert len(outcomes(schedule)) == 3


def test_a_success_resets_the_count_of_failures(fleet: Fleet):
    schedule = create(fleet.agent(), "0 * * * *", pause_after_failures=2)
    _fail_runs(fleet, schedule, 1)
    _fail_runs(fleet, schedule, 2, state="succeeded")
    assert reread(schedule).failure_count == 0
    _fail_runs(fleet, schedule, 3)
    assert states(schedule) == ("active", "")


def test_a_resume_resets_the_count_of_failures(fleet: Fleet):
    schedule = create(fleet.agent(), "0 * * * *", pause_after_failures=2)
    _fail_runs(fleet, schedule, 1, 2)
    edit.resume(schedule, "ann", at(hours=2, minutes=30))
    _fail_runs(fleet, schedule, 3)
    assert (reread(schedule).state, reread(schedule).failure_count) == ("active", 1)


def test_without_a_limit_of_failures_a_schedule_stays_active(fleet: Fleet):
    schedule = create(fleet.agent(), "0 * * * *")
    _fail_runs(fleet, schedule, *range(1, 12))
    assert (reread(schedule).state, reread(schedule).failure_count) == ("active", 11)


def test_only_the_last_attempt_counts_as_a_failure(fleet: Fleet):
    schedule = create(fleet.agent(retries=1), "0 * * * *", pause_after_failures=1)
    _fail_runs(fleet, schedule, 1)
    assert (reread(schedule).state, reread(schedule).failure_count) == ("active", 0)


def test_a_stopped_run_is_neither_a_failure_nor_a_success(fleet: Fleet):
    schedule = create(fleet.agent(), "0 * * * *", pause_after_failures=2)
    _fail_runs(fleet, schedule, 1)
    _fail_runs(fleet, schedule, 2, state="stopped")
    assert (reread(schedule).state, reread(schedule).failure_count) == ("active", 1)


def test_a_run_replaced_by_a_newer_firing_is_no_failure(fleet: Fleet):
    schedule = create(fleet.agent(), "0 * * * *", overlap="cancel_other", pause_after_failures=1)
    tick(at(hours=1)), tick(at(hours=2))
    assert (reread(schedule).state, reread(schedule).failure_count) == ("active", 0)


def test_an_interval_paused_by_failures_waits_one_interval_after_it_is_resumed(fleet: Fleet):
    schedule = create(fleet.agent(), "1h", pause_after_failures=1)
    _fail_runs(fleet, schedule, 0)
    edit.resume(schedule, "ann", at(hours=7))
    assert reread(schedule).next_fire_at == at(hours=8)
