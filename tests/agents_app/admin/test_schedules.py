"""Schedules created in the admin: the saved trigger, and refusals at their fields."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client
from django.urls import reverse

from agents_app.models import Agent, RunEvent, Schedule
from tests.agents_app.fleet import NOON, Fleet, at

ADD = "/admin/schedules/add/"


def saved(fleet: Fleet, expression: str = "0 9 * * *", **columns: Any) -> Schedule:
    """Of a person, armed for noon."""
    return fleet.schedule(fleet.agent(), expression, **{"text": expression, **columns})


def form(agent: Agent, /, **fields: Any) -> dict[str, Any]:
    """The fields that the page sends when no field was edited."""
    return {
        "agent": agent.pk,
        "name": "mine",
        "text": "0 9 * * *",
        "timezone": "Europe/Berlin",
        "anchor": "",
        "gap": "shift",
        "overlap_hour": "first",
        "prompt": "",
        "overlap": "",
        "pause_after_failures": "0",
        "catch_up": "last",
        "catch_up_window_seconds": "3600",
        "jitter_percent": "0",
        "jitter_seconds": "0",
        **fields,
    }


def add(client: Client, agent: Agent, **fields: Any) -> Schedule:
    response = client.post(ADD, form(agent, **fields))
    assert response.status_code == 302, errors_of(response)
    return agent.schedules.latest("id")


def edit(client: Client, schedule: Schedule, **fields: Any) -> Schedule:
    response = client.post(page_of(schedule), same(schedule) | fields)
    assert response.status_code == 302, errors_of(response)
    schedule.refresh_from_db()
    return schedule


def same(schedule: Schedule) -> dict[str, Any]:
    """The fields that the page of a schedule sends when no field was edited."""
    return form(
        schedule.agent,
        name=schedule.name,
        text=schedule.text,
        timezone=schedule.timezone,
        overlap=schedule.overlap,
    )


def errors_of(response: Any) -> dict[str, Any]:
    assert response.status_code == 200, "it was saved"
    return dict(response.context["adminform"].form.errors)


def page_of(schedule: Schedule) -> str:
    return reverse("admin:agents_app_schedule_change", args=[schedule.pk])


def told(name: str) -> list[str]:
    return list(RunEvent.objects.filter(name=name).values_list("detail", flat=True))


# --- making ---------------------------------------------------------------------------------


def test_a_new_schedule_belongs_to_its_agents_tenant_and_is_armed(boss: Client, fleet: Fleet):
    schedule = add(boss, fleet.agent(), text="  30 6 * * 1-5 ")
    assert (schedule.tenant, schedule.source, schedule.state) == (fleet.tenant, "person", "active")
    assert (schedule.text, schedule.expression) == ("30 6 * * 1-5", "30 6 * * 1-5")
    assert schedule.next_fire_at is not None
    assert schedule.next_fire_at > datetime.now(UTC)
    assert schedule.next_fire_at.minute == 30
    assert told("schedule.created") == ["mine: ann"]


def test_a_new_interval_is_armed_to_fire_at_once(boss: Client, fleet: Fleet):
    schedule = add(boss, fleet.agent(), text="15m")
    assert schedule.interval_seconds == 900
    assert schedule.next_fire_at is not None
    assert abs(schedule.next_fire_at - datetime.now(UTC)) < timedelta(seconds=30)


@time_machine.travel(NOON, tick=False)
def test_a_phrase_that_fires_once_is_kept_as_written_and_as_the_instant_it_means(
    boss: Client, fleet: Fleet
):
    schedule = add(boss, fleet.agent(), text="in 30 minutes")
    assert (schedule.text, schedule.one_shot) == ("in 30 minutes", True)
    assert schedule.expression == "at 2026-03-02T12:30:00Z"
    assert schedule.next_fire_at == at(minutes=30)


def test_omitted_fields_have_their_defaults(boss: Client, fleet: Fleet):
    agent = fleet.agent()
    recurring = add(boss, agent, name="", text="every weekday at 09:00")
    assert (recurring.name, recurring.overlap) == ("every-weekday-at-09-00", "skip")
    assert add(boss, agent, name="", text="in 2 days").overlap == "queue"
    assert add(boss, agent, name="", text="in 3 days", overlap="skip").overlap == "skip"


def test_every_policy_can_be_chosen(boss: Client, fleet: Fleet):
    chosen = {
        **{"text": "15m", "timezone": "Asia/Tokyo", "anchor": "start", "prompt": "be brief"},
        **{"gap": "next_valid", "overlap_hour": "both", "overlap": "queue_one"},
        **{"catch_up": "all", "catch_up_window_seconds": 60.0, "pause_after_failures": 3},
        **{"jitter_percent": 5.0, "jitter_seconds": 1.5},
    }
    schedule = add(boss, fleet.agent(), **chosen)
    assert {name: getattr(schedule, name) for name in chosen} == chosen
    assert schedule.interval_seconds is None


def test_a_zone_that_the_text_names_is_the_schedules(boss: Client, fleet: Fleet):
    schedule = add(boss, fleet.agent(), text="every day at 09:00 Asia/Tokyo")
    assert schedule.timezone == "Asia/Tokyo"
    assert schedule.next_fire_at is not None
    assert schedule.next_fire_at.hour == 0


def test_the_name_of_an_ended_schedule_is_free_again(boss: Client, fleet: Fleet):
    ended = fleet.schedule(fleet.agent(), name="mine", state="completed", fire_count=1)
    schedule = add(boss, ended.agent)
    assert (schedule.name, schedule.fire_count) == ("mine", 0)
    ended.refresh_from_db()
    assert ended.fire_count == 1


def test_after_save_and_continue_the_page_of_the_new_schedule_is_shown(boss: Client, fleet: Fleet):
    wanted = form(fleet.agent(), name="", text="daily") | {"_continue": "1"}
    response = boss.post(ADD, wanted, follow=True)
    schedule = Schedule.objects.get()
    assert response.redirect_chain[-1][0] == page_of(schedule)
    assert "reporter/daily" in response.content.decode()


# --- editing --------------------------------------------------------------------------------


def test_an_edited_text_arms_anew_and_the_counters_of_beat_stay(boss: Client, fleet: Fleet):
    schedule = saved(fleet, fire_count=7, missed_count=2)
    edit(boss, schedule, text="45 23 * * *", fire_count="0")
    assert schedule.next_fire_at is not None
    assert schedule.next_fire_at > NOON
    assert schedule.next_fire_at.minute == 45
    assert (schedule.fire_count, schedule.missed_count) == (7, 2)
    assert told("schedule.edited") == ["main: ann: text"]


def test_an_edit_of_something_else_leaves_the_armed_fire_alone(boss: Client, fleet: Fleet):
    schedule = saved(fleet, timezone="Europe/Berlin")
    edit(boss, schedule, prompt="be brief", overlap="queue")
    assert (schedule.prompt, schedule.overlap) == ("be brief", "queue")
    assert schedule.next_fire_at == NOON
    assert told("schedule.edited") == ["main: ann: overlap, prompt"]


def test_saving_without_a_change_changes_and_notes_nothing(boss: Client, fleet: Fleet):
    schedule = saved(fleet)
    edit(boss, schedule)
    assert schedule.next_fire_at == NOON
    assert told("schedule.edited") == []


def test_a_phrase_that_is_not_edited_keeps_the_instant_it_meant(boss: Client, fleet: Fleet):
    columns = {"text": "in 30 minutes", "one_shot": True, "state": "paused"}
    schedule = saved(fleet, "at 2026-03-02T12:00:00Z", **columns)
    edit(boss, schedule, prompt="hurry")
    assert (schedule.prompt, schedule.next_fire_at) == ("hurry", NOON)


def test_a_schedule_is_renamed_and_keeps_its_next_fire(boss: Client, fleet: Fleet):
    schedule = saved(fleet)
    armed = schedule.next_fire_at
    taken = fleet.schedule(schedule.agent, name="taken")
    response = boss.post(page_of(schedule), same(schedule) | {"name": "taken"})
    assert "choose another name" in str(errors_of(response))
    edit(boss, schedule, name="weekly report")
    assert (schedule.name, schedule.next_fire_at) == ("weekly report", armed)
    Schedule.objects.filter(pk=taken.pk).update(state="canceled")
    edit(boss, schedule, name="taken")
    taken.refresh_from_db()
    assert (schedule.name, taken.name) == ("taken", f"taken.{taken.pk}")


def test_agent_and_state_cannot_be_edited(boss: Client, fleet: Fleet):
    schedule = saved(fleet)
    other = fleet.agent("other")
    stolen = {"agent": other.pk, "state": "canceled", "source": "file"}
    edit(boss, schedule, prompt="mine", **stolen)
    assert (schedule.agent.name, schedule.name, schedule.prompt) == ("reporter", "main", "mine")
    assert (schedule.state, schedule.source) == ("active", "person")


@pytest.mark.parametrize("columns", [{"source": "file"}, {"state": "canceled"}])
def test_a_schedule_of_a_file_or_an_ended_one_is_not_edited(
    boss: Client, fleet: Fleet, columns: dict[str, str]
):
    schedule = fleet.schedule(fleet.agent(), **columns)
    assert 'name="_save"' not in boss.get(page_of(schedule)).content.decode()
    assert boss.post(page_of(schedule), form(schedule.agent)).status_code == 403


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"text": "0 25 * * *"}, "text", "hour"),
        ({"text": "0 0 30 2 *"}, "text", "never"),
        ({"text": "sometimes"}, "text", "cannot read"),
        ({"text": "on 2020-01-01"}, "text", "past"),
        ({"text": "every day at 09:00 Europe/Berlln"}, "text", "did you mean Europe/Berlin?"),
        ({"text": ""}, "text", "required"),
        ({"timezone": "Europe/Berlln"}, "timezone", "did you mean Europe/Berlin?"),
        ({"catch_up_window_seconds": "-1"}, "catch_up_window_seconds", "greater than or equal"),
        ({"catch_up_window_seconds": "1e300"}, "catch_up_window_seconds", "less than or equal"),
        ({"jitter_percent": "11", "text": "15m"}, "jitter_percent", "less than or equal to 10"),
        ({"jitter_percent": "5"}, "jitter_percent", "needs an interval"),
        ({"jitter_seconds": "-1"}, "jitter_seconds", "greater than or equal"),
        ({"anchor": "start"}, "anchor", "only an interval"),
        ({"pause_after_failures": "-1"}, "pause_after_failures", "greater than or equal"),
        ({"gap": "jump"}, "gap", "valid choice"),
    ],
)
def test_what_cannot_be_used_is_refused_on_its_field_in_the_parsers_words(
    boss: Client, fleet: Fleet, fields: dict[str, str], field: str, message: str
):
    found = errors_of(boss.post(ADD, form(fleet.agent(), **fields)))
    assert list(found) == [field]
    assert message in " ".join(found[field])
    assert not Schedule.objects.exists()
    assert told("schedule.created") == []


def test_an_edit_is_refused_on_its_field_too(boss: Client, fleet: Fleet):
    schedule = saved(fleet)
    for fields in ({"text": "sometimes"}, {"anchor": "start"}, {"timezone": "Mars/Olympus"}):
        found = errors_of(boss.post(page_of(schedule), same(schedule) | fields))
        assert list(found) == list(fields)
    schedule.refresh_from_db()
    assert (schedule.expression, schedule.next_fire_at) == ("0 9 * * *", NOON)


@pytest.mark.parametrize("state", ["active", "paused"])
def test_a_name_is_used_once_an_agent(boss: Client, fleet: Fleet, state: str):
    schedule = fleet.schedule(fleet.agent("jitter"), state=state)
    found = errors_of(boss.post(ADD, form(schedule.agent, name="main")))
    assert list(found) == ["name"]
    assert "choose another name" in str(found)
