"""What the form of a schedule shows before anything is saved."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.test import Client
from django.urls import reverse

from agents_app.models import Schedule
from tests.agents_app.admin.test_schedules import add, page_of
from tests.agents_app.fleet import NOON, Fleet, at

PREVIEW = "/admin/schedules/preview/"
BEFORE_SPRING = datetime(2026, 3, 27, 12, tzinfo=UTC)
BEFORE_AUTUMN = datetime(2026, 10, 23, 12, tzinfo=UTC)


def shown(client: Client, text: str, timezone: str = "UTC", **policies: str) -> str:
    response = client.get(PREVIEW, {"text": text, "timezone": timezone, **policies})
    assert response.status_code == 200
    return response.content.decode()


# --- next fires -----------------------------------------------------------------------------


def test_the_preview_has_the_next_five_fires_in_both_zones(boss: Client):
    answer = shown(boss, "0 9 * * *", "Asia/Tokyo")
    assert answer.count("09:00 JST") == answer.count("00:00 UTC") == 5


@time_machine.travel(NOON, tick=False)
def test_a_phrase_that_fires_once_shows_one_fire(boss: Client):
    answer = shown(boss, "in 30 minutes", "Asia/Tokyo")
    assert answer.count("<td>") == 2
    assert "Once, Mon 02 Mar 2026 21:30 JST" in answer


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("30 7 * * 1-5", "At 07:30, Monday to Friday, in Asia/Tokyo"),
        ("every month on the last day", "At 09:00, on the last day of the month, in Asia/Tokyo"),
        ("90m", "Every 1 hour and 30 minutes, counted from the end of each run"),
        ("every 15 minutes", "Every 15 minutes, counted from its creation, by elapsed time"),
    ],
)
def test_the_preview_describes_the_trigger_in_words(boss: Client, text: str, said: str):
    assert said in shown(boss, text, "Asia/Tokyo")


def test_each_fire_is_there_for_the_readers_own_clock_too(boss: Client):
    answer = shown(boss, "every day at 09:00", "Asia/Tokyo")
    assert answer.count('T00:00:00+00:00" data-yours>') == 5
    assert 'data-zone="Asia/Tokyo"' in answer


@time_machine.travel(NOON, tick=False)
def test_an_interval_is_shown_as_its_anchor_has_it(boss: Client):
    assert "12:00 UTC" in shown(boss, "15m")
    assert "end of each run" in shown(boss, "15m")
    assert "12:00 UTC" not in shown(boss, "15m", anchor="start")
    assert "elapsed" in shown(boss, "15m", anchor="start")


def test_a_zone_that_the_text_names_is_pointed_out(boss: Client):
    named = shown(boss, "every day at 09:00 Asia/Tokyo", "Europe/Berlin")
    assert "09:00 JST" in named
    assert "Time zone taken from the text: Asia/Tokyo" in named
    assert "its own zone" not in shown(boss, "every day at 09:00", "Europe/Berlin")


# --- clock changes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gap", "remark"),
    [
        ("shift", "02:30 does not exist that day: 1 h later"),
        ("next_valid", "02:30 does not exist that day: right after the change"),
        ("skip", "02:30 does not exist that day and is skipped"),
        ("nonsense", "02:30 does not exist that day: 1 h later"),
    ],
)
@time_machine.travel(BEFORE_SPRING, tick=False)
def test_a_time_that_the_clocks_leave_out_is_remarked_on(boss: Client, gap: str, remark: str):
    answer = shown(boss, "every day at 02:30", "Europe/Berlin", gap=gap)
    assert "Clocks go forward 1 h at 02:00 on Sun 29 Mar 2026" in answer
    assert remark in answer


@pytest.mark.parametrize(("overlap_hour", "times"), [("first", 1), ("second", 1), ("both", 2)])
@time_machine.travel(BEFORE_AUTUMN, tick=False)
def test_a_time_that_comes_twice_is_remarked_on(boss: Client, overlap_hour: str, times: int):
    answer = shown(boss, "every day at 02:30", "Europe/Berlin", overlap_hour=overlap_hour)
    assert answer.count("02:30 occurs twice") == times


def test_nothing_is_said_about_clocks_that_never_change(boss: Client):
    assert "Clocks go" not in shown(boss, "every day at 02:30", "UTC")


# --- what cannot be read --------------------------------------------------------------------


def test_the_preview_escapes_the_text_in_an_error(boss: Client):
    assert "&lt;script&gt;" in shown(boss, "<script> * * * *")
    assert "Unknown time zone" in shown(boss, "@daily", "Mars/Olympus")


def test_an_invalid_word_is_marked_and_another_text_is_suggested(boss: Client):
    answer = shown(boss, "every mondey at 9")
    assert "every <mark>mondey</mark> at 9" in answer
    assert 'data-use="every monday at 09:00"' in answer


def test_a_wrong_zone_is_no_fault_of_the_text(boss: Client):
    answer = shown(boss, "every day at 09:00", "Europe/Berln")
    assert "did you mean Europe/Berlin?" in answer
    assert "<mark>" not in answer and "data-use" not in answer


def test_what_cannot_be_read_is_answered_with_every_accepted_form(boss: Client):
    answer = shown(boss, "every now and then")
    assert "dv-wrong" in answer
    for form in ("in 30 minutes", "every monday and friday at 09:00", "15m", "0 9 * * 1-5"):
        assert form in answer


def test_the_preview_of_an_empty_form_has_examples_and_no_error(boss: Client):
    answer = shown(boss, "")
    assert "Enter a schedule, for example" in answer
    assert "Examples" in answer
    assert "dv-wrong" not in answer


def test_the_preview_requires_the_permission_to_see_schedules(client: Client, visitor: Client):
    assert "UTC" in shown(visitor, "@daily")
    assert client.get(PREVIEW)["Location"].startswith("/admin/login/")


# --- of what is saved -----------------------------------------------------------------------


def page(client: Client, schedule: Schedule) -> str:
    return client.get(page_of(schedule)).content.decode()


@time_machine.travel(NOON, tick=False)
def test_a_saved_schedule_shows_its_next_fires(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), "0 9 * * *", next_fire_at=at(hours=21))
    assert "Tue 03 Mar 2026 09:00 UTC" in page(boss, schedule)
    assert "Sat 07 Mar 2026 09:00 UTC" in page(boss, schedule)


@time_machine.travel(BEFORE_SPRING, tick=False)
def test_what_the_form_has_made_shows_the_fires_that_it_promised(boss: Client, fleet: Fleet):
    agent = fleet.agent()
    once = add(boss, agent, name="once", text="in 30 minutes")
    (fire,) = boss.get(page_of(once)).context["preview"].fires
    assert fire.at == BEFORE_SPRING + timedelta(minutes=30)
    nightly = add(boss, agent, name="nightly", text="every day at 02:30")
    assert "02:30 does not exist that day: 1 h later" in page(boss, nightly)


@time_machine.travel(NOON, tick=False)
def test_a_saved_phrase_shows_the_instant_it_meant_when_it_was_saved(boss: Client, fleet: Fleet):
    columns = {"text": "in 30 minutes", "one_shot": True, "next_fire_at": at(minutes=10)}
    schedule = fleet.schedule(fleet.agent(), "at 2026-03-02T12:10:00Z", **columns)
    preview = boss.get(page_of(schedule)).context["preview"]
    assert [fire.at for fire in preview.fires] == [at(minutes=10)]


@time_machine.travel(NOON, tick=False)
def test_a_paused_one_shot_whose_time_has_come_would_fire_when_it_is_resumed(
    boss: Client, fleet: Fleet
):
    columns = {"one_shot": True, "state": "paused", "next_fire_at": at(hours=-1)}
    schedule = fleet.schedule(fleet.agent(), "at 2026-03-02T11:00:00Z", **columns)
    response = boss.get(page_of(schedule))
    assert [fire.at for fire in response.context["preview"].fires] == [NOON]
    assert "If resumed now, the schedule fires" in response.content.decode()


@pytest.mark.parametrize("state", ["active", "completed", "failed", "canceled"])
def test_what_has_ended_never_fires_again(boss: Client, fleet: Fleet, state: str):
    columns = {"one_shot": True, "state": state, "next_fire_at": None}
    schedule = fleet.schedule(fleet.agent(), "at 2026-03-02T11:00:00Z", **columns)
    assert "No more fires" in page(boss, schedule)


def test_the_form_asks_for_the_preview_with_everything_that_matters(boss: Client):
    asks = boss.get(reverse("admin:agents_app_schedule_add")).content.decode()
    assert 'hx-include="#id_text,#id_timezone,#id_anchor,#id_gap,#id_overlap_hour"' in asks
