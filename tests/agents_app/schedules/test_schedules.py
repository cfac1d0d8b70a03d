"""People create and edit schedules: what becomes of the text, and what is refused."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from agents_app.clock import HOST_ZONE
from agents_app.errors import Refused, TriggerParseError
from agents_app.models import Schedule
from agents_app.schedules import edit
from agents_app.schedules.edit import Draft
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.timely import create, last_work, look, run, states, tick, told

# --- create ---------------------------------------------------------------------------------


def test_a_new_schedule_is_active_armed_and_noted(fleet: Fleet):
    schedule = create(fleet.agent(), "every weekday at 14:00", name="lunch", prompt="eat")
    seen = look(schedule)
    assert (seen.state, seen.next_fire_at, seen.source) == ("active", at(hours=2), "person")
    assert (seen.name, seen.prompt) == ("lunch", "eat")
    assert (seen.text, seen.expression) == ("every weekday at 14:00", "0 14 * * 1-5")
    assert told("schedule.created") == ["lunch: ann"]


def test_a_zone_in_the_text_is_the_schedules_zone(fleet: Fleet):
    schedule = create(fleet.agent(), "every day at 14:00 Europe/Berlin", timezone="Asia/Tokyo")
    assert (schedule.timezone, schedule.next_fire_at) == ("Europe/Berlin", at(hours=1))


def test_without_a_zone_it_is_the_hosts(fleet: Fleet):
    assert create(fleet.agent(), "15m", timezone=None).timezone == HOST_ZONE


@pytest.mark.parametrize(
    ("text", "name"),
    [("every monday at 09:00", "every-monday-at-09-00"), ("*/5 * * * *", "5"), ("15m", "15m")],
)
def test_a_schedule_without_a_name_is_named_after_its_text(fleet: Fleet, text, name):
    assert create(fleet.agent(), text).name == name


@pytest.mark.parametrize(
    ("text", "overlap", "becomes"),
    [
        ("every hour", None, "skip"),
        ("tomorrow at 09:00", None, "queue"),
        ("tomorrow at 09:00", "skip", "skip"),
        ("every hour", "queue_one", "queue_one"),
    ],
)
def test_what_fires_once_waits_for_a_slot_unless_told_otherwise(
    fleet: Fleet, text, overlap, becomes
):
    assert create(fleet.agent(), text, overlap=overlap).overlap == becomes


def test_a_preview_is_the_row_that_would_be_written_and_writes_nothing(fleet: Fleet):
    drafted = edit.draft_schedule(fleet.agent(), Draft(text="in 2 hours"), NOON)
    assert (drafted.next_fire_at, drafted.one_shot, drafted.pk) == (at(hours=2), True, None)
    assert not Schedule.objects.exists()


@pytest.mark.parametrize(
    ("draft", "message"),
    [
        ({"jitter_percent": 5}, "a jitter in percent needs an interval; give a duration"),
        ({"text": "15m", "jitter_percent": 11}, "a jitter is 0 to 10 percent, or a duration"),
        ({"text": "15m", "jitter_percent": -1}, "a jitter is 0 to 10 percent"),
        ({"jitter_seconds": -1}, "jitter_seconds: must be from 0 to 366 days"),
        ({"jitter_seconds": float("nan")}, "jitter_seconds: must be from 0"),
        ({"catch_up_window_seconds": 1e12}, "catch_up_window_seconds: must be from 0 to 366"),
        ({"anchor": "start"}, "only an interval has an anchor"),
        ({"text": "in 5 minutes", "anchor": "start"}, "only an interval has an anchor"),
        ({"text": "15m", "anchor": "middle"}, "anchor: Value 'middle' is not a valid choice"),
        ({"overlap": "never"}, "overlap: Value 'never' is not a valid choice"),
        ({"catch_up": "some"}, "catch_up: Value 'some' is not a valid choice"),
        ({"pause_after_failures": -1}, "pause_after_failures: "),
        ({"name": "x" * 101}, "name: Ensure this value has at most 100 characters"),
    ],
)
def test_a_draft_that_makes_no_sense_is_refused_with_the_reason(fleet: Fleet, draft, message):
    agent = fleet.agent()
    with pytest.raises(Refused) as refusal:
        create(agent, **{"text": "every day at 09:00", **draft})
    assert str(refusal.value).startswith(message)
    assert not Schedule.objects.exists()


@pytest.mark.parametrize("text", ["now and then", "at 2020-01-01 09:00", "0 0 30 2 *", "", "6 6"])
def test_a_text_that_says_no_time_to_come_is_refused_with_what_is_accepted(fleet: Fleet, text):
    with pytest.raises(TriggerParseError) as refusal:
        create(fleet.agent(), text)
    assert "in 30 minutes" in refusal.value.accepted
    assert not Schedule.objects.exists()


# --- names ----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["active", "paused"])
def test_a_name_in_use_is_refused(fleet: Fleet, state):
    agent = fleet.agent()
    fleet.schedule(agent, name="daily", state=state)
    with pytest.raises(Refused, match=rf"reporter has a schedule 'daily' already \({state}\)"):
        create(agent, "@daily", name="daily")


@pytest.mark.parametrize("state", ["canceled", "completed", "failed"])
def test_a_name_of_what_is_over_is_free_and_the_old_one_keeps_its_history(fleet: Fleet, state):
    agent = fleet.agent()
    old = fleet.schedule(agent, name="daily", state=state)
    fleet.firing(old)
    new = create(agent, "@daily", name="daily")
    assert (look(old).name, look(old).state) == (f"daily.{old.pk}", state)
    assert (look(new).name, look(new).state) == ("daily", "active")
    assert (old.firings.count(), new.firings.count()) == (1, 0)


def test_a_long_name_is_free_again_as_well(fleet: Fleet):
    agent = fleet.agent()
    for _ in range(3):
        edit.cancel(create(agent, "@daily", name="x" * 100), "ann", NOON)
    assert Schedule.objects.count() == 3


def test_two_agents_may_use_the_same_name(fleet: Fleet):
    names = [create(fleet.agent(a), "@daily", name="daily").name for a in ("one", "two")]
    assert names == ["daily", "daily"]


# --- edit -----------------------------------------------------------------------------------


def _lived(fleet: Fleet, text: str = "0 * * * *", **draft: Any) -> Schedule:
    """One that has fired twice, at one and at two o'clock; the second run failed."""
    schedule = create(fleet.agent(), text, **draft)
    for hour, state in ((1, "succeeded"), (2, "failed")):
        run(fleet, schedule, state, at(hours=hour))
    return look(schedule)


def test_an_edit_of_the_time_arms_anew_and_keeps_all_that_was(fleet: Fleet):
    schedule = _lived(fleet)
    edited = edit.edit(schedule, {"text": "every day at 20:00"}, "bob", at(hours=2))
    assert (edited.pk, edited.next_fire_at) == (schedule.pk, at(hours=8))
    assert (edited.text, edited.expression) == ("every day at 20:00", "0 20 * * *")
    assert (edited.fire_count, edited.failure_count) == (2, 1)
    assert (edited.last_fire_at, edited.last_completed_at) == (at(hours=2), at(hours=2))
    assert look(schedule).next_fire_at == at(hours=8)
    assert schedule.firings.count() == 2
    assert told("schedule.edited") == ["0: bob: text"]


def test_an_edit_of_anything_else_leaves_the_next_fire_alone(fleet: Fleet):
    schedule = create(fleet.agent(), "every 2 hours")
    changes = {"prompt": "new", "overlap": "queue", "jitter_seconds": 0, "catch_up": "all"}
    edit.edit(schedule, changes, "bob", at(hours=1))
    seen = look(schedule)
    assert (seen.next_fire_at, seen.prompt, seen.overlap) == (at(hours=2), "new", "queue")


def test_what_fires_after_an_edit_has_the_new_prompt(fleet: Fleet):
    schedule = create(fleet.agent(), "every hour", prompt="old")
    edit.edit(schedule, {"prompt": "new"}, "bob", NOON)
    tick(at(hours=1))
    assert last_work(schedule).prompt == "new"


def test_another_zone_is_another_time(fleet: Fleet):
    schedule = create(fleet.agent(), "every day at 14:00")
    edit.edit(schedule, {"timezone": "Europe/Berlin"}, "bob", NOON)
    assert look(schedule).next_fire_at == at(hours=1)


def test_an_edited_interval_counts_from_the_last_completion(fleet: Fleet):
    schedule = create(fleet.agent(), "1h")
    run(fleet, schedule, "succeeded", at(minutes=1))
    edit.edit(schedule, {"text": "10m"}, "bob", at(minutes=5))
    assert look(schedule).next_fire_at == at(minutes=11)
    edit.edit(schedule, {"text": "2m"}, "bob", at(minutes=6))
    assert look(schedule).next_fire_at == at(minutes=6)


def test_a_paused_schedule_stays_paused_and_resumes_with_its_new_time(fleet: Fleet):
    schedule = create(fleet.agent(), "every day at 14:00")
    edit.pause(schedule, "ann", NOON, "hold")
    edit.edit(schedule, {"text": "every day at 15:00"}, "bob", NOON)
    assert states(schedule) == ("paused", "hold")
    edit.resume(schedule, "ann", at(60))
    assert look(schedule).next_fire_at == at(hours=3)


@pytest.mark.parametrize("state", ["completed", "failed", "canceled"])
def test_what_is_over_is_not_edited(fleet: Fleet, state):
    schedule = fleet.schedule(fleet.agent(), state=state)
    with pytest.raises(Refused, match=f"a {state} schedule is not edited: create a new one"):
        edit.edit(schedule, {"prompt": "new"}, "bob", NOON)


@pytest.mark.parametrize(
    "changes",
    [{"text": "never"}, {"text": "in 5 minutes", "anchor": "start"}, {"overlap": "maybe"}],
)
def test_a_refused_edit_changes_neither_the_row_nor_what_the_caller_has(fleet: Fleet, changes):
    schedule = create(fleet.agent(), "every day at 14:00")
    before = Schedule.objects.values().get()
    with pytest.raises((Refused, TriggerParseError)):
        edit.edit(schedule, changes, "bob", NOON)
    assert Schedule.objects.values().get() == before
    assert (schedule.text, schedule.overlap) == ("every day at 14:00", "skip")


# --- done twice -----------------------------------------------------------------------------


class _UndoneError(Exception):
    pass


def _twice(meanwhile: Callable[[], object]) -> Callable[[Callable[[], Any]], Any]:
    """As commit.py does where the changes of others stood in the way: undone, and done again."""

    def in_transaction(change: Callable[[], Any]) -> Any:
        try:
            with transaction.atomic():
                change()
                raise _UndoneError
        except _UndoneError:
            meanwhile()
            return change()

    return in_transaction


def test_a_schedule_created_in_a_second_attempt_takes_no_others_place(fleet: Fleet, monkeypatch):
    agent, other = fleet.agent(), fleet.agent("other")
    meanwhile = lambda: fleet.schedule(other, name="theirs")  # noqa: E731
    monkeypatch.setattr(edit, "in_transaction", _twice(meanwhile))
    mine = create(agent, "@daily", name="mine")
    assert sorted(Schedule.objects.values_list("agent__name", "name")) == [
        ("other", "theirs"),
        ("reporter", "mine"),
    ]
    assert look(mine).name == "mine"
    assert told("schedule.created") == ["mine: ann"]


def test_an_edit_in_a_second_attempt_is_the_same_edit(fleet: Fleet, monkeypatch):
    schedule = create(fleet.agent(), "every day at 14:00")
    monkeypatch.setattr(edit, "in_transaction", _twice(lambda: None))
    edit.edit(schedule, {"text": "every hour"}, "ann", at(130))
    assert look(schedule).next_fire_at == at(hours=1, seconds=130)
    assert told("schedule.edited") == ["every-day-at-14-00: ann: text"]


def test_without_a_zone_a_schedule_is_in_its_agents(fleet: Fleet):
    agent = fleet.agent(timezone="Asia/Tokyo")
    schedule = edit.create(agent, edit.Draft(text="every day at 09:00"), "ann", NOON)
    assert (schedule.timezone, schedule.next_fire_at) == ("Asia/Tokyo", at(hours=12))
