"""Schedules that people make: what is shown before saving, what is refused, what saving arms."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from agents_app.admin.next_fires import preview
from agents_app.models import Agent, RunEvent, Schedule
from tests.agents.fleet import NOON, Fleet, at

ADD = "/admin/agents_app/schedule/add/"


def form(agent: Agent, **fields: Any) -> dict[str, Any]:
    return {
        "agent": agent.pk,
        "name": "mine",
        "expression": "0 9 * * *",
        "timezone": "Europe/Berlin",
        "prompt": "",
        "overlap": "skip",
        "catch_up": "last",
        "catch_up_window_seconds": "3600",
        **fields,
    }


def errors_of(response: Any) -> dict[str, Any]:
    assert response.status_code == 200, "it was saved"
    return dict(response.context["adminform"].form.errors)


def page_of(schedule: Schedule) -> str:
    return reverse("admin:agents_app_schedule_change", args=[schedule.pk])


# --- making and editing ---------------------------------------------------------------------


def test_a_new_schedule_belongs_to_its_agents_tenant_and_is_armed(boss: Client, fleet: Fleet):
    agent = fleet.agent()
    boss.post(ADD, form(agent, expression="  30 6 * * 1-5 "))
    schedule = agent.schedules.get()
    assert (schedule.tenant, schedule.source, schedule.state) == (fleet.tenant, "person", "active")
    assert schedule.expression == "30 6 * * 1-5"
    assert schedule.next_fire_at is not None
    assert schedule.next_fire_at > datetime.now(UTC)
    assert schedule.next_fire_at.minute == 30
    assert RunEvent.objects.get(name="schedule.created").detail == "mine: ann"


def test_a_new_interval_is_armed_to_fire_at_once(boss: Client, fleet: Fleet):
    agent = fleet.agent()
    boss.post(ADD, form(agent, expression="15m"))
    schedule = agent.schedules.get()
    assert schedule.interval_seconds == 900
    assert schedule.next_fire_at is not None
    assert abs(schedule.next_fire_at - datetime.now(UTC)) < timedelta(seconds=30)


def test_an_edited_expression_arms_anew_and_the_counters_of_beat_stay(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), "0 9 * * *", fire_count=7, missed_count=2)
    boss.post(page_of(schedule), form(schedule.agent, expression="45 23 * * *", fire_count="0"))
    schedule.refresh_from_db()
    assert schedule.next_fire_at is not None
    assert schedule.next_fire_at > NOON
    assert schedule.next_fire_at.minute == 45
    assert (schedule.fire_count, schedule.missed_count) == (7, 2)
    assert RunEvent.objects.get(name="schedule.edited").detail == "main: ann"


def test_an_edit_of_something_else_leaves_the_armed_fire_alone(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), "0 9 * * *", timezone="Europe/Berlin")
    boss.post(page_of(schedule), form(schedule.agent, prompt="be brief", overlap="queue"))
    schedule.refresh_from_db()
    assert (schedule.prompt, schedule.overlap) == ("be brief", "queue")
    assert schedule.next_fire_at == NOON


def test_agent_name_and_state_cannot_be_edited(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    other = fleet.agent("other")
    boss.post(page_of(schedule), form(other, name="stolen", state="canceled", source="file"))
    schedule.refresh_from_db()
    assert (schedule.agent.name, schedule.name) == ("reporter", "main")
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
        ({"expression": "0 25 * * *"}, "expression", "hour"),
        ({"expression": "0 0 30 2 *"}, "expression", "never"),
        ({"expression": "sometimes"}, "expression", "cannot read"),
        ({"timezone": "Europe/Berlln"}, "timezone", "did you mean Europe/Berlin?"),
        ({"catch_up_window_seconds": "-1"}, "catch_up_window_seconds", "greater than or equal"),
        ({"catch_up_window_seconds": "1e300"}, "catch_up_window_seconds", "less than or equal"),
    ],
)
def test_what_cannot_be_used_is_refused_on_its_field_in_the_parsers_words(
    boss: Client, fleet: Fleet, fields: dict[str, str], field: str, message: str
):
    found = errors_of(boss.post(ADD, form(fleet.agent(), **fields)))
    assert message in " ".join(found[field])
    assert not Schedule.objects.exists()


def test_a_name_is_used_once_an_agent(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    found = errors_of(boss.post(ADD, form(schedule.agent, name="main")))
    assert "already exists" in str(found)


# --- before saving --------------------------------------------------------------------------


def shown(client: Client, expression: str, timezone: str) -> str:
    asked = {"expression": expression, "timezone": timezone}
    response = client.get(reverse("admin:agents_app_schedule_preview"), asked)
    assert response.status_code == 200
    return response.content.decode()


def test_the_form_is_told_the_next_five_fires_in_both_zones(boss: Client):
    answer = shown(boss, "0 9 * * *", "Asia/Tokyo")
    assert answer.count("09:00 JST") == answer.count("00:00 UTC") == 5


def test_the_form_is_told_what_is_wrong_without_markup_of_the_writers(boss: Client):
    assert "&lt;script&gt;" in shown(boss, "<script> * * * *", "UTC")
    assert "unknown time zone" in shown(boss, "@daily", "Mars/Olympus")


def test_an_empty_form_is_told_what_to_write_and_nothing_is_called_wrong(boss: Client):
    answer = shown(boss, "", "UTC")
    assert "cron expression" in answer
    assert "dv-error" not in answer


def test_the_preview_is_for_those_who_may_see_schedules(client: Client, visitor: Client):
    assert "UTC" in shown(visitor, "@daily", "UTC")
    url = reverse("admin:agents_app_schedule_preview")
    assert client.get(url)["Location"].startswith("/admin/login/")


def test_a_saved_schedule_shows_its_next_fires(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), "0 9 * * *", next_fire_at=at(hours=21))
    page = boss.get(page_of(schedule)).content.decode()
    assert "Tue 03 Mar 2026 09:00 UTC" in page
    assert "Sat 07 Mar 2026 09:00 UTC" in page


def test_a_new_interval_is_shown_to_fire_at_once_and_then_after_each_run():
    seen = preview("90s", "UTC", None, NOON)
    clocks = [fire.utc.removeprefix("Mon 02 Mar 2026 ") for fire in seen.fires[:3]]
    assert clocks == ["12:00 UTC", "12:01:30 UTC", "12:03 UTC"]
    assert "end of each run" in seen.note


def test_fires_around_a_clock_change_keep_their_local_time():
    seen = preview("30 8 * * *", "Europe/Berlin", None, datetime(2026, 3, 28, tzinfo=UTC))
    assert [fire.local[-10:] for fire in seen.fires[:2]] == [" 08:30 CET", "08:30 CEST"]
    assert [fire.utc[-9:] for fire in seen.fires[:2]] == ["07:30 UTC", "06:30 UTC"]
