"""The explanation of a past or future time of a schedule."""

from datetime import UTC, datetime

import pytest

from agents_app.console import PastExplanation
from agents_app.errors import Refused
from agents_app.models import Firing, Schedule
from agents_app.schedules import edit
from agents_app.schedules.why import explain_past
from agents_app.schedules.why.past import FIRST, LAST
from tests.agents_app.fleet import NOON, Fleet, at


def hourly(fleet: Fleet, **columns: object) -> Schedule:
    """Created an hour before noon, so that it was due at noon."""
    schedule = fleet.schedule(fleet.agent(), "0 * * * *", next_fire_at=at(hours=1), **columns)
    Schedule.objects.update(created_at=at(hours=-1))
    schedule.refresh_from_db()
    return schedule


def explain_at(schedule: Schedule, moment: datetime) -> PastExplanation:
    """The explanation as of three o'clock."""
    return explain_past(schedule, moment, at(hours=3))


def test_the_firing_near_the_given_time_is_explained(fleet: Fleet):
    schedule = hourly(fleet)
    fleet.firing(schedule, NOON)
    Firing.objects.update(outcome="skipped", reason="at_capacity")
    seen = explain_at(schedule, at(40))
    assert seen.text == "Due at Mon 02 Mar 2026 12:00 UTC: skipped, no slot was free."
    assert seen.firing is not None and seen.firing.due_at == NOON
    assert seen.due_at == NOON


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1899, 12, 31, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 58, tzinfo=UTC),
    ],
)
def test_a_time_without_a_local_time_in_every_zone_is_refused(fleet: Fleet, moment: datetime):
    with pytest.raises(Refused, match="choose another"):
        explain_at(hourly(fleet), moment)


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
@pytest.mark.parametrize("moment", [FIRST, LAST])
def test_the_first_and_the_last_time_are_explained_in_the_outermost_zones(
    fleet: Fleet, zone: str, moment: datetime
):
    assert explain_at(hourly(fleet, timezone=zone), moment).firing is None


def test_of_two_firings_the_nearer_one_is_explained(fleet: Fleet):
    schedule = hourly(fleet)
    for second in (0, 50):
        fleet.firing(schedule, at(second))
    near, far = explain_at(schedule, at(30)), explain_at(schedule, at(20))
    assert near.firing is not None and near.firing.due_at == at(50)
    assert near.before is not None and near.before.due_at == NOON
    assert far.firing is not None and far.firing.due_at == NOON
    assert far.after is not None and far.after.due_at == at(50)


def test_the_explanation_includes_the_work_of_the_firing(fleet: Fleet):
    schedule = hourly(fleet)
    fleet.fire(schedule)
    text = explain_at(schedule, NOON).text
    assert text.startswith("Due at Mon 02 Mar 2026 12:00 UTC: started, a slot was free; run")
    assert text.endswith("waits for a worker.")


def test_at_a_time_without_a_firing_the_neighbours_are_named(fleet: Fleet):
    schedule = hourly(fleet)
    for hour in range(2):
        fleet.firing(schedule, at(hours=hour))
    seen = explain_at(schedule, at(minutes=30))
    assert (seen.text, seen.firing, seen.due_at) == (
        "The schedule was not due at that time.",
        None,
        None,
    )
    assert seen.before is not None and seen.before.due_at == NOON
    assert seen.after is not None and seen.after.due_at == at(hours=1)


def test_a_time_before_the_creation_of_the_schedule_is_explained(fleet: Fleet):
    seen = explain_at(hourly(fleet), at(hours=-5))
    assert seen.text == "The schedule was created later, at Mon 02 Mar 2026 11:00 UTC."


def test_a_past_pause_is_explained_with_user_and_note(fleet: Fleet):
    schedule = hourly(fleet)
    edit.pause(schedule, "ann", at(minutes=-10), "too loud")
    edit.resume(schedule, "bob", at(minutes=10))
    expected = "it was paused at Mon 02 Mar 2026 11:50 UTC by ann: too loud."
    assert explain_at(schedule, NOON).text.endswith(f"but no firing is recorded: {expected}")
    later = explain_at(schedule, at(hours=1)).text
    assert "paused at" not in later and "it was not active" in later


def test_the_pause_of_another_schedule_is_not_named(fleet: Fleet):
    schedule = hourly(fleet)
    other = fleet.schedule(schedule.agent, name="main-2")
    edit.pause(other, "ann", at(minutes=-10))
    assert "paused at" not in explain_at(schedule, NOON).text


def test_a_future_time_is_explained_by_the_present_times(fleet: Fleet):
    schedule = hourly(fleet)
    due = "The schedule is due at Mon 02 Mar 2026 16:00 UTC, in the future"
    assert explain_at(schedule, at(hours=4)).text == f"{due}."
    assert explain_at(schedule, at(hours=4.5)).text == "The schedule is not due at that time."
    schedule.state = Schedule.State.PAUSED
    assert explain_at(schedule, at(hours=4)).text == f"{due}, but it is paused."


def test_past_due_times_of_an_interval_are_unknown(fleet: Fleet):
    schedule = hourly(fleet)
    Schedule.objects.update(expression="1h")
    schedule.refresh_from_db()
    assert explain_at(schedule, NOON).text == "The schedule was not due at that time."


def test_times_are_in_the_zone_of_the_schedule(fleet: Fleet):
    seen = explain_at(hourly(fleet, timezone="Europe/Berlin"), at(hours=4))
    assert seen.local == "Mon 02 Mar 2026 17:00 CET"
    assert "17:00 CET" in seen.text
