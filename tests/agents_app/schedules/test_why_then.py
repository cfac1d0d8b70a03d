"""What happened at that time, or why nothing did."""

from datetime import datetime

from agents_app.models import Firing, Schedule
from agents_app.schedules import edit
from agents_app.schedules.why import Then, explain_then
from tests.agents_app.fleet import NOON, Fleet, at


def hourly(fleet: Fleet, **columns: object) -> Schedule:
    """Made an hour before noon, so that the fire at noon was its business."""
    schedule = fleet.schedule(fleet.agent(), "0 * * * *", next_fire_at=at(hours=1), **columns)
    Schedule.objects.update(created_at=at(hours=-1))
    schedule.refresh_from_db()
    return schedule


def then(schedule: Schedule, moment: datetime) -> Then:
    """Somebody asks at three."""
    return explain_then(schedule, moment, at(hours=3))


def test_the_firing_of_about_that_time_is_told(fleet: Fleet):
    schedule = hourly(fleet)
    fleet.firing(schedule, NOON)
    Firing.objects.update(outcome="skipped", reason="at_capacity")
    seen = then(schedule, at(40))
    assert seen.text == "It was due at Mon 02 Mar 2026 12:00 UTC: skipped, no slot was free."
    assert seen.firing is not None and seen.firing.due_at == NOON
    assert seen.due_at == NOON


def test_of_two_the_nearer_one_is_meant(fleet: Fleet):
    schedule = hourly(fleet)
    for second in (0, 50):
        fleet.firing(schedule, at(second))
    near, far = then(schedule, at(30)), then(schedule, at(20))
    assert near.firing is not None and near.firing.due_at == at(50)
    assert near.before is not None and near.before.due_at == NOON
    assert far.firing is not None and far.firing.due_at == NOON
    assert far.after is not None and far.after.due_at == at(50)


def test_what_became_of_it_is_told_too(fleet: Fleet):
    schedule = hourly(fleet)
    fleet.fire(schedule)
    text = then(schedule, NOON).text
    assert text.startswith("It was due at Mon 02 Mar 2026 12:00 UTC: started, a slot was free; run")
    assert text.endswith("waits for a worker.")


def test_when_nothing_was_due_the_neighbours_are_named(fleet: Fleet):
    schedule = hourly(fleet)
    for hour in range(2):
        fleet.firing(schedule, at(hours=hour))
    seen = then(schedule, at(minutes=30))
    assert (seen.text, seen.firing, seen.due_at) == ("Nothing was due then.", None, None)
    assert seen.before is not None and seen.before.due_at == NOON
    assert seen.after is not None and seen.after.due_at == at(hours=1)


def test_before_it_was_made_nothing_could_be_due(fleet: Fleet):
    seen = then(hourly(fleet), at(hours=-5))
    assert seen.text == "It did not exist then: it was created at Mon 02 Mar 2026 11:00 UTC."


def test_a_pause_is_found_in_the_journal_with_who_and_why(fleet: Fleet):
    schedule = hourly(fleet)
    edit.pause(schedule, "ann", at(minutes=-10), "too loud")
    edit.resume(schedule, "bob", at(minutes=10))
    expected = "it had been paused at Mon 02 Mar 2026 11:50 UTC by ann: too loud."
    assert then(schedule, NOON).text.endswith(f"but nothing is recorded: {expected}")
    later = then(schedule, at(hours=1)).text
    assert "paused at" not in later and "it was not active then" in later


def test_another_schedules_pause_is_not_this_ones(fleet: Fleet):
    schedule = hourly(fleet)
    other = fleet.schedule(schedule.agent, name="main-2")
    edit.pause(other, "ann", at(minutes=-10))
    assert "paused at" not in then(schedule, NOON).text


def test_a_time_still_to_come_says_whether_it_is_due_then(fleet: Fleet):
    schedule = hourly(fleet)
    due = "It is due at Mon 02 Mar 2026 16:00 UTC, which is still to come"
    assert then(schedule, at(hours=4)).text == f"{due}."
    assert then(schedule, at(hours=4.5)).text == "Nothing is due then."
    schedule.state = Schedule.State.PAUSED
    assert then(schedule, at(hours=4)).text == f"{due}; but it is paused."


def test_of_an_interval_nobody_can_say_when_it_would_have_been_due(fleet: Fleet):
    schedule = hourly(fleet)
    Schedule.objects.update(expression="1h")
    schedule.refresh_from_db()
    assert then(schedule, NOON).text == "Nothing was due then."


def test_times_are_told_in_the_schedules_zone(fleet: Fleet):
    seen = then(hourly(fleet, timezone="Europe/Berlin"), at(hours=4))
    assert seen.local == "Mon 02 Mar 2026 17:00 CET"
    assert "17:00 CET" in seen.text
