"""Creating and editing schedules: the effect of the text, and refusals."""

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
from tests.agents_app.timely import create, event_details, last_work, reread, run, states, tick

# --- create ---------------------------------------------------------------------------------


def test_a_new_schedule_is_active_with_a_next_fire_time_and_an_event(fleet: Fleet):
    schedule = create(fleet.agent(), "every weekday at 14:00", name="lunch", prompt="eat")
    seen = reread(schedule)
    assert (seen.state, seen.next_fire_at, seen.source) == ("active", at(hours=2), "person")
    assert (seen.name, seen.prompt) == ("lunch", "eat")
    assert (seen.text, seen.expression) == ("every weekday at 14:00", "0 14 * * 1-5")
    assert event_details("schedule.created") == ["lunch: ann"]


def test_a_zone_in_the_text_becomes_the_zone_of_the_schedule(fleet: Fleet):
    schedule = create(fleet.agent(), "every day at 14:00 Europe/Berlin", timezone="Asia/Tokyo")
    assert (schedule.timezone, schedule.next_fire_at) == ("Europe/Berlin", at(hours=1))


def test_without_a_zone_the_zone_of_the_host_is_used(fleet: Fleet):
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
def test_a_one_shot_has_overlap_queue_by_default(fleet: Fleet, text, overlap, becomes):
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
def test_an_invalid_draft_is_refused_with_the_reason(fleet: Fleet, draft, message):
    agent = fleet.agent()
    with pytest.raises(Refused) as refusal:
        create(agent, **{"text": "every day at 09:00", **draft})
    assert str(refusal.value).startswith(message)
    assert not Schedule.objects.exists()


@pytest.mark.parametrize("text", ["now and then", "at 2020-01-01 09:00", "0 0 30 2 *", "", "6 6"])
@pytest.mark.fault("F79")
def test_a_text_without_a_future_time_is_refused_with_the_accepted_forms(fleet: Fleet, text):
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
def test_the_name_of_an_ended_schedule_can_be_reused_and_the_old_schedule_keeps_its_history(
    fleet: Fleet, state
):
    agent = fleet.agent()
    old = fleet.schedule(agent, name="daily", state=state)
    fleet.firing(old)
    new = create(agent, "@daily", name="daily")
    assert (reread(old).name, reread(old).state) == (f"daily.{old.pk}", state)
    assert (reread(new).name, reread(new).state) == ("daily", "active")
    assert (old.firings.count(), new.firings.count()) == (1, 0)


def test_a_long_name_of_an_ended_schedule_can_be_reused(fleet: Fleet):
    agent = fleet.agent()
    for _ in range(3):
        edit.cancel(create(agent, "@daily", name="x" * 100), "ann", NOON)
    assert Schedule.objects.count() == 3


def test_two_agents_may_use_the_same_name(fleet: Fleet):
    names = [create(fleet.agent(a), "@daily", name="daily").name for a in ("one", "two")]
    assert names == ["daily", "daily"]


# --- edit -----------------------------------------------------------------------------------


def _with_history(fleet: Fleet, text: str = "0 * * * *", **draft: Any) -> Schedule:
    """A schedule that has fired at one and at two o'clock; the second run failed."""
    schedule = create(fleet.agent(), text, **draft)
    for hour, state in ((1, "succeeded"), (2, "failed")):
        run(fleet, schedule, state, at(hours=hour))
    return reread(schedule)


def test_an_edit_of_the_time_sets_the_next_fire_time_and_keeps_the_history(fleet: Fleet):
    schedule = _with_history(fleet)
    edited = edit.edit(schedule, {"text": "every day at 20:00"}, "bob", at(hours=2))
    assert (edited.pk, edited.next_fire_at) == (schedule.pk, at(hours=8))
    assert (edited.text, edited.expression) == ("every day at 20:00", "0 20 * * *")
    assert (edited.fire_count, edited.failure_count) == (2, 1)
    assert (edited.last_fire_at, edited.last_completed_at) == (at(hours=2), at(hours=2))
    assert reread(schedule).next_fire_at == at(hours=8)
    assert schedule.firings.count() == 2
    assert event_details("schedule.edited") == ["0: bob: text"]


def test_an_edit_of_other_columns_keeps_the_next_fire_time(fleet: Fleet):
    schedule = create(fleet.agent(), "every 2 hours")
    changes = {"prompt": "new", "overlap": "queue", "jitter_seconds": 0, "catch_up": "all"}
    edit.edit(schedule, changes, "bob", at(hours=1))
    seen = reread(schedule)
    assert (seen.next_fire_at, seen.prompt, seen.overlap) == (at(hours=2), "new", "queue")


def test_a_firing_after_an_edit_has_the_new_prompt(fleet: Fleet):
    schedule = create(fleet.agent(), "every hour", prompt="old")
    edit.edit(schedule, {"prompt": "new"}, "bob", NOON)
    tick(at(hours=1))
    assert last_work(schedule).prompt == "new"


def test_an_edit_of_the_zone_changes_the_next_fire_time(fleet: Fleet):
    schedule = create(fleet.agent(), "every day at 14:00")
    edit.edit(schedule, {"timezone": "Europe/Berlin"}, "bob", NOON)
    assert reread(schedule).next_fire_at == at(hours=1)


def test_an_edited_interval_counts_from_the_last_completion(fleet: Fleet):
    schedule = create(fleet.agent(), "1h")
    run(fleet, schedule, "succeeded", at(minutes=1))
    edit.edit(schedule, {"text": "10m"}, "bob", at(minutes=5))
    assert reread(schedule).next_fire_at == at(minutes=11)
    edit.edit(schedule, {"text": "2m"}, "bob", at(minutes=6))
    assert reread(schedule).next_fire_at == at(minutes=6)


def test_a_paused_schedule_stays_paused_and_resumes_with_its_new_time(fleet: Fleet):
    schedule = create(fleet.agent(), "every day at 14:00")
    edit.pause(schedule, "ann", NOON, "hold")
    edit.edit(schedule, {"text": "every day at 15:00"}, "bob", NOON)
    assert states(schedule) == ("paused", "hold")
    edit.resume(schedule, "ann", at(60))
    assert reread(schedule).next_fire_at == at(hours=3)


@pytest.mark.parametrize("state", ["completed", "failed", "canceled"])
def test_an_edit_of_an_ended_schedule_is_refused(fleet: Fleet, state):
    schedule = fleet.schedule(fleet.agent(), state=state)
    with pytest.raises(Refused, match=f"a {state} schedule cannot be edited: create a new one"):
        edit.edit(schedule, {"prompt": "new"}, "bob", NOON)


@pytest.mark.parametrize(
    "changes",
    [{"text": "never"}, {"text": "in 5 minutes", "anchor": "start"}, {"overlap": "maybe"}],
)
def test_a_refused_edit_changes_neither_the_row_nor_the_object_of_the_caller(fleet: Fleet, changes):
    schedule = create(fleet.agent(), "every day at 14:00")
    before = Schedule.objects.values().get()
    with pytest.raises((Refused, TriggerParseError)):
        edit.edit(schedule, changes, "bob", NOON)
    assert Schedule.objects.values().get() == before
    assert (schedule.text, schedule.overlap) == ("every day at 14:00", "skip")


# --- repeated transactions ------------------------------------------------------------------


class _RollBackError(Exception):
    pass


def _repeated(meanwhile: Callable[[], object]) -> Callable[[Callable[[], Any]], Any]:
    """An `in_transaction` that rolls back once and repeats, as after a conflict."""

    def in_transaction(change: Callable[[], Any]) -> Any:
        try:
            with transaction.atomic():
                change()
                raise _RollBackError
        except _RollBackError:
            meanwhile()
            return change()

    return in_transaction


def test_a_schedule_created_in_a_repeated_transaction_overwrites_no_other(
    fleet: Fleet, monkeypatch
):
    agent, other = fleet.agent(), fleet.agent("other")
    meanwhile = lambda: fleet.schedule(other, name="theirs")  # noqa: E731
    monkeypatch.setattr(edit, "in_transaction", _repeated(meanwhile))
    mine = create(agent, "@daily", name="mine")
    assert sorted(Schedule.objects.values_list("agent__name", "name")) == [
        ("other", "theirs"),
        ("reporter", "mine"),
    ]
    assert reread(mine).name == "mine"
    assert event_details("schedule.created") == ["mine: ann"]


def test_an_edit_in_a_repeated_transaction_has_the_same_effect(fleet: Fleet, monkeypatch):
    schedule = create(fleet.agent(), "every day at 14:00")
    monkeypatch.setattr(edit, "in_transaction", _repeated(lambda: None))
    edit.edit(schedule, {"text": "every hour"}, "ann", at(130))
    assert reread(schedule).next_fire_at == at(hours=1, seconds=130)
    assert event_details("schedule.edited") == ["every-day-at-14-00: ann: text"]


def test_without_a_zone_the_zone_of_the_agent_is_used(fleet: Fleet):
    agent = fleet.agent(timezone="Asia/Tokyo")
    schedule = edit.create(agent, edit.Draft(text="every day at 09:00"), "ann", NOON)
    assert (schedule.timezone, schedule.next_fire_at) == ("Asia/Tokyo", at(hours=12))
