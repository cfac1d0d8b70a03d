"""Schedules that people make in a terminal: every way to say when, and what they are told."""

import pytest

from agents_app.cli.command import DroverCommand
from agents_app.clock import HOST_ZONE
from agents_app.models import RunEvent, Schedule
from agents_app.schedules import due
from agents_app.triggers import zone
from agents_app.triggers.options import past_moment_of
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.management.calling import Said, call


@pytest.fixture(autouse=True)
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DroverCommand, "now", NOON)


def create(*arguments: str) -> Said:
    return call("schedule", "create", "reporter", *arguments)


# --- every way to say when ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text", "expression"),
    [
        (("every", "monday", "at", "09:00"), "every monday at 09:00", "0 9 * * 1"),
        (("every monday at 09:00",), "every monday at 09:00", "0 9 * * 1"),
        (("--cron", "0 9 * * 1-5"), "0 9 * * 1-5", "0 9 * * 1-5"),
        (("--cron", "@daily"), "@daily", "0 0 * * *"),
        (("--at", "2026-06-01 12:00"), "at 2026-06-01 12:00", "at 2026-06-01T12:00:00Z"),
        (("--at", "2026-06-01"), "on 2026-06-01", "at 2026-06-01T09:00:00Z"),
        (("--at", "17:00"), "at 17:00", "at 2026-03-02T17:00:00Z"),
        (("--at", "9am"), "at 9am", "at 2026-03-03T09:00:00Z"),
        (("--at", "tomorrow at 9am"), "tomorrow at 9am", "at 2026-03-03T09:00:00Z"),
        (("--at", "2026-06-01T12:00:00+02:00"), None, "at 2026-06-01T10:00:00Z"),
        (("--in", "30m"), "in 30m", "at 2026-03-02T12:30:00Z"),
        (("--in", "30 minutes"), "in 30 minutes", "at 2026-03-02T12:30:00Z"),
        (("--in", "1.5h"), "in 90 minutes", "at 2026-03-02T13:30:00Z"),
        (("--in", "an hour"), "in an hour", "at 2026-03-02T13:00:00Z"),
        (("--every", "1.5h"), "every 90 minutes", "every 90 minutes"),
        (("--every", "15m"), "every 15m", "every 15 minutes"),
        (("--every", "30s"), "every 30s", "every 30 seconds"),
        (("--every", "*/10 * * * *"), "*/10 * * * *", "*/10 * * * *"),
        (("--every", "0 9 * * 1-5"), "0 9 * * 1-5", "0 9 * * 1-5"),
        (("--every", "@daily"), "@daily", "0 0 * * *"),
        (("--every", "day at 9am and 5pm"), "every day at 9am and 5pm", "0 9,17 * * *"),
        (("--every", "2 hours"), "every 2 hours", "every 2 hours"),
        (("--every", "day at 09:00"), "every day at 09:00", "0 9 * * *"),
        (("15m",), "15m", "15m"),
    ],
)
def test_every_way_to_say_when_is_understood(
    fleet: Fleet, arguments: tuple[str, ...], text: str | None, expression: str
):
    fleet.agent()
    said = create(*arguments, "--zone", "UTC")
    assert said.code == 0, said.err
    schedule = Schedule.objects.get()
    assert schedule.expression == expression
    assert text is None or schedule.text == text


def test_a_plain_duration_counts_elapsed_time_from_the_creation(fleet: Fleet):
    fleet.agent()
    create("--every", "1.5h")
    schedule = Schedule.objects.get()
    assert (schedule.next_fire_at, schedule.interval_seconds) == (at(hours=1.5), None)


def test_an_interval_may_count_from_the_end_of_its_runs(fleet: Fleet):
    fleet.agent()
    create("--every", "1.5h", "--anchor", "completion")
    schedule = Schedule.objects.get()
    assert (schedule.next_fire_at, schedule.interval_seconds) == (NOON, 5400)


def test_the_text_may_stand_behind_the_options(fleet: Fleet):
    fleet.agent()
    create("-m", "count the sheep", "--name", "sheep", "every", "monday")
    schedule = Schedule.objects.get()
    assert (schedule.text, schedule.name) == ("every monday", "sheep")
    assert schedule.prompt == "count the sheep"


@pytest.mark.parametrize("option", ["-m", "--message", "--prompt"])
def test_the_message_has_three_names(fleet: Fleet, option: str):
    fleet.agent()
    create("@daily", option, "count the sheep")
    assert Schedule.objects.get().prompt == "count the sheep"


def test_the_policies_are_saved(fleet: Fleet):
    fleet.agent()
    policies = (
        *("--overlap", "queue-one", "--catch-up", "all", "--catch-up-window", "2h"),
        *("--jitter", "5%", "--gap", "next_valid", "--overlap-hour", "both"),
        *("--pause-after-failures", "3"),
    )
    said = create("every 2 hours", *policies)
    assert said.code == 0, said.err
    s = Schedule.objects.get()
    assert (s.overlap, s.catch_up, s.catch_up_window_seconds) == ("queue_one", "all", 7200)
    assert (s.jitter_percent, s.jitter_seconds, s.pause_after_failures) == (5, 0, 3)
    assert (s.gap, s.overlap_hour) == ("next_valid", "both")


def test_a_jitter_may_be_a_duration(fleet: Fleet):
    fleet.agent()
    create("@daily", "--jitter", "1.5m")
    assert Schedule.objects.get().jitter_seconds == 90


# --- the zone -------------------------------------------------------------------------------


def test_without_a_zone_the_zone_of_the_host_is_used(fleet: Fleet):
    fleet.agent()
    create("@daily")
    assert Schedule.objects.get().timezone == HOST_ZONE


def test_a_zone_at_the_end_of_the_text_wins(fleet: Fleet):
    fleet.agent()
    create("every", "day", "at", "09:00", "Asia/Tokyo", "--zone", "UTC")
    assert Schedule.objects.get().timezone == "Asia/Tokyo"


def test_a_time_is_read_in_the_zone_that_was_given(fleet: Fleet):
    fleet.agent()
    create("--at", "17:00", "--zone", "Europe/Berlin")
    assert Schedule.objects.get().next_fire_at == at(hours=4)


def test_the_zone_is_kept_after_the_first_fire(fleet: Fleet):
    """Behaviour ge15."""
    fleet.agent()
    create("--cron", "0 9 * * *", "--zone", "Asia/Tokyo")
    assert Schedule.objects.get().next_fire_at == at(hours=12)
    due.claim_due_schedules(at(hours=12))
    schedule = Schedule.objects.get()
    assert (schedule.timezone, schedule.next_fire_at) == ("Asia/Tokyo", at(hours=36))


# --- what is said ---------------------------------------------------------------------------


def test_the_next_three_fires_are_told_in_the_schedules_zone(fleet: Fleet):
    fleet.agent()
    said = create("every", "day", "at", "09:00", "--zone", "Asia/Tokyo", "--name", "morning")
    number = Schedule.objects.get().pk
    assert said.out.splitlines() == [
        f"reporter/morning (#{number}): every day at 09:00, Asia/Tokyo",
        "  next fires:     Tue 03 Mar 2026 09:00 JST (in 12 h)",
        "                  Wed 04 Mar 2026 09:00 JST (in 36 h)",
        "                  Thu 05 Mar 2026 09:00 JST (in 2 d)",
    ]


def test_what_a_clock_change_does_is_shown_if_it_does_anything(fleet: Fleet):
    fleet.agent()
    night = create("every day at 02:30", "--zone", "Europe/Berlin").out
    assert "clocks go forward 1 h at 02:00 on Sun 29 Mar 2026:" in night
    assert "02:30 does not exist that day: 1 h later" in night
    assert "clocks" not in create("every day at 09:00", "--zone", "Europe/Berlin").out


def test_a_dry_run_shows_the_fires_and_saves_nothing(fleet: Fleet):
    fleet.agent()
    said = create("--in", "30m", "--zone", "UTC", "--dry-run")
    assert "Mon 02 Mar 2026 12:30 UTC (in 30 min)" in said.out
    assert "Fires once." in said.out
    assert create("--in", "30m", "--dry-run", "--json").json["created_at"] is None
    assert not Schedule.objects.exists()
    assert not RunEvent.objects.exists()


def test_json_has_every_time_in_utc_and_in_the_zone(fleet: Fleet):
    fleet.agent()
    value = create("every day at 02:30", "--zone", "Europe/Berlin", "--json").json
    assert (value["agent"], value["name"], value["state"]) == (
        "reporter",
        "every-day-at-02-30",
        "active",
    )
    assert value["next_fire_at"] == "2026-03-03T01:30:00Z"
    assert value["next_fire_local"] == "2026-03-03T02:30:00+01:00"
    assert len(value["next_fires"]) == 3
    assert value["next_fires"][0] == {
        "at": "2026-03-03T01:30:00Z",
        "local": "2026-03-03T02:30:00+01:00",
        "remark": "",
    }
    assert value["clock_change"]["at"] == "2026-03-29T01:00:00Z"


def test_what_stands_in_its_way_is_said_beside_the_result(fleet: Fleet):
    fleet.agent(scale=0)
    said = create("@daily", "--json")
    assert said.json["name"] == "daily"
    assert "the agent's scale is 0: give it a scale above 0" in said.err


def test_an_event_names_the_user_who_created_it(fleet: Fleet):
    fleet.agent()
    create("@daily", "--name", "mine")
    assert RunEvent.objects.get(name="schedule.created").detail.startswith("mine: ")


# --- names ----------------------------------------------------------------------------------


def test_another_agent_may_have_one_of_the_same_name(fleet: Fleet):
    fleet.agent()
    fleet.agent("other")
    create("@daily", "--name", "mine")
    assert call("schedule", "create", "other", "@daily", "--name", "mine").code == 0


def test_the_name_of_a_canceled_one_is_free_again(fleet: Fleet):
    fleet.agent()
    create("@daily", "--name", "mine")
    call("schedule", "cancel", "mine")
    assert create("@hourly", "--name", "mine").code == 0
    assert Schedule.objects.get(name="mine").state == "active"
    assert Schedule.objects.get(state="canceled").name.startswith("mine.")


def test_without_a_name_two_may_be_asked_for_in_the_same_words(fleet: Fleet):
    fleet.agent()
    for _ in range(3):
        assert create("--in", "30m").code == 0
    names = Schedule.objects.order_by("pk").values_list("name", flat=True)
    assert list(names) == ["in-30m", "in-30m-2", "in-30m-3"]


# --- times that are over --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("09:00", -3),
        ("14:00", -22),
        ("at 09:00", -3),
        ("2 hours ago", -2),
        ("yesterday at 10:00", -26),
        ("yesterday", -27),
        ("today at 09:00", -3),
        ("2026-03-01 09:00", -27),
        ("tomorrow", 21),
    ],
)
def test_texts_about_past_times_are_parsed(text: str, hours: int):
    assert past_moment_of("--at", text, NOON, zone("UTC")) == at(hours=hours)
