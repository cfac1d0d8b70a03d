"""What people see before they save a schedule, also across a clock change."""

from datetime import UTC, datetime, timedelta

import pytest

from agents_app.triggers.preview import (
    FROM_THE_END,
    FROM_THE_START,
    ONCE,
    ClockChange,
    preview_fires,
)
from tests.agents_app.fleet import NOON, at

BERLIN = "Europe/Berlin"
# Clocks go forward on 29 March 2026 and back on 25 October.
SPRING, AUTUMN = NOON, datetime(2026, 10, 1, tzinfo=UTC)


def local_times(text: str, timezone: str = "UTC", **how: object) -> list[str]:
    seen = preview_fires(text, timezone, NOON, **how)  # type: ignore[arg-type]
    assert seen.error == ""
    return [fire.local for fire in seen.fires]


def change_of(text: str, now: datetime, timezone: str = BERLIN, **how: str) -> ClockChange:
    seen = preview_fires(text, timezone, now, **how)  # type: ignore[arg-type]
    assert seen.change is not None
    return seen.change


def around(change: ClockChange) -> list[tuple[str, str]]:
    """Day and time, and the remark."""
    return [(fire.local[4:6] + fire.local[15:], fire.remark) for fire in change.fires]


# --- the next few ---------------------------------------------------------------------------


def test_fires_are_formatted_in_the_zone_and_in_utc():
    seen = preview_fires("0 9 * * *", "Asia/Tokyo", NOON)
    assert len(seen.fires) == 5
    first = seen.fires[0]
    assert (first.local, first.utc) == ("Tue 03 Mar 2026 09:00 JST", "Tue 03 Mar 2026 00:00 UTC")
    assert first.at == at(hours=12)
    assert (seen.expression, seen.timezone, seen.note) == ("0 9 * * *", "Asia/Tokyo", "")


def test_as_many_as_are_asked_for():
    assert len(local_times("@hourly", count=12)) == 12
    assert len(local_times("@hourly", count=1)) == 1


def test_a_phrase_is_understood_and_its_zone_wins():
    seen = preview_fires("every monday at 09:00 America/New_York", BERLIN, NOON)
    assert (seen.expression, seen.timezone) == ("0 9 * * 1", "America/New_York")
    assert seen.fires[0].local == "Mon 02 Mar 2026 09:00 EST"


def test_a_new_interval_fires_at_once_and_then_after_each_run():
    seen = preview_fires("90s", "UTC", NOON, count=3)
    clocks = [fire.utc.removeprefix("Mon 02 Mar 2026 ") for fire in seen.fires]
    assert clocks == ["12:00 UTC", "12:01:30 UTC", "12:03 UTC"]
    assert seen.note == FROM_THE_END


def test_an_interval_that_counts_from_its_start_waits_first():
    assert local_times("every 2 hours", count=1) == ["Mon 02 Mar 2026 14:00 UTC"]
    assert preview_fires("every 2 hours", "UTC", NOON).note == FROM_THE_START


def test_an_anchor_that_was_chosen_counts_more_than_the_usual_one():
    assert local_times("2h", anchor="start", count=1) == ["Mon 02 Mar 2026 14:00 UTC"]
    assert local_times("every 2 hours", anchor="completion", count=1) == [
        "Mon 02 Mar 2026 12:00 UTC"
    ]


def test_a_one_shot_is_one_line_that_says_so():
    seen = preview_fires("tomorrow", BERLIN, NOON)
    assert [fire.local for fire in seen.fires] == ["Tue 03 Mar 2026 09:00 CET"]
    assert (seen.note, seen.change) == (ONCE, None)


def test_of_a_saved_schedule_the_armed_fire_comes_first():
    armed = at(minutes=7)
    assert local_times("every 2 hours", armed=armed, count=2) == [
        "Mon 02 Mar 2026 12:07 UTC",
        "Mon 02 Mar 2026 14:07 UTC",
    ]
    assert local_times("0 9 * * *", armed=armed, count=2) == [
        "Mon 02 Mar 2026 12:07 UTC",
        "Tue 03 Mar 2026 09:00 UTC",
    ]


def test_a_saved_one_shot_keeps_its_stored_time():
    assert local_times("in 30 minutes", armed=at(minutes=5)) == ["Mon 02 Mar 2026 12:05 UTC"]
    assert local_times("at 2026-03-02T11:00Z", armed=NOON) == ["Mon 02 Mar 2026 12:00 UTC"]


def test_the_last_day_of_time_has_no_tomorrow_in_the_east():
    assert local_times("9999-12-31T23:59Z", "Pacific/Kiritimati") == ["Fri 31 Dec 9999 23:59 UTC"]


# --- what is wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "timezone", "reason"),
    [
        ("sometimes", "UTC", 'cannot read "sometimes"'),
        ("0 25 * * *", "UTC", "hour"),
        ("at 2020-01-01 12:00", "UTC", "is in the past"),
    ],
)
def test_a_wrong_text_is_answered_with_the_reason_and_the_accepted_forms(
    text: str, timezone: str, reason: str
):
    seen = preview_fires(text, timezone, NOON)
    assert reason in seen.error
    assert "every monday" in seen.accepted and "@daily" in seen.accepted
    assert seen.fires == ()


def test_a_wrong_zone_is_answered_with_the_nearest():
    seen = preview_fires("@daily", "Europe/Berlln", NOON)
    assert "did you mean Europe/Berlin?" in seen.error


def test_an_empty_text_is_a_note_and_not_an_error():
    seen = preview_fires("  ", "UTC", NOON)
    assert seen.error == ""
    assert "enter a schedule, for example" in seen.note


# --- clock changes --------------------------------------------------------------------------


def test_a_time_that_is_left_out_comes_as_much_later():
    change = change_of("30 2 * * *", SPRING)
    assert change.text == "clocks go forward 1 h at 02:00 on Sun 29 Mar 2026"
    assert change.at == datetime(2026, 3, 29, 1, tzinfo=UTC)
    moved = "clocks go forward 1 h at 02:00; 02:30 does not exist that day: 1 h later"
    assert around(change) == [("28 02:30 CET", ""), ("29 03:30 CEST", moved), ("30 02:30 CEST", "")]
    assert change.special


def test_a_time_that_is_left_out_comes_when_the_clocks_have_changed():
    change = change_of("30 2 * * *", SPRING, gap="next_valid")
    day, remark = around(change)[1]
    assert day == "29 03:00 CEST"
    assert remark.endswith("; 02:30 does not exist that day: right after the change")


def test_a_time_that_is_left_out_is_skipped():
    change = change_of("30 2 * * *", SPRING, gap="skip")
    assert [day for day, _ in around(change)] == ["28 02:30 CET", "30 02:30 CEST"]
    assert change.note == "02:30 does not exist that day and is skipped."
    assert change.special


@pytest.mark.parametrize(
    ("policy", "days", "which"),
    [
        ("first", ["24 02:30 CEST", "25 02:30 CEST", "26 02:30 CET"], ["first"]),
        ("second", ["24 02:30 CEST", "25 02:30 CET", "26 02:30 CET"], ["second"]),
        (
            "both",
            ["24 02:30 CEST", "25 02:30 CEST", "25 02:30 CET", "26 02:30 CET"],
            ["first", "second"],
        ),
    ],
)
def test_a_time_that_comes_twice_fires_as_the_policy_says(
    policy: str, days: list[str], which: list[str]
):
    change = change_of("30 2 * * *", AUTUMN, overlap_hour=policy)
    assert change.text == "clocks go back 1 h at 03:00 on Sun 25 Oct 2026"
    assert [day for day, _ in around(change)] == days
    remarks = [remark for _, remark in around(change) if "occurs twice" in remark]
    assert [remark.split()[-2] for remark in remarks] == which


def test_a_time_far_from_the_change_only_shows_that_it_stays():
    change = change_of("0 9 * * *", SPRING)
    assert around(change) == [
        ("28 09:00 CET", ""),
        ("29 09:00 CEST", "clocks go forward 1 h at 02:00"),
    ]
    assert not change.special


def test_elapsed_time_shifts_on_the_wall():
    assert [day for day, _ in around(change_of("every 2 days", SPRING))] == [
        "28 13:00 CET",
        "30 14:00 CEST",
    ]


def test_of_many_in_the_hour_only_a_few_are_shown():
    change = change_of("* * * * *", AUTUMN)
    assert [day for day, _ in around(change)] == [
        "25 01:59 CEST",
        "25 02:00 CEST",
        "25 02:01 CEST",
        "25 02:02 CEST",
        "25 02:03 CEST",
        "25 03:00 CET",
    ]


def test_half_an_hour_is_a_change_too():
    change = change_of("40 1 * * *", NOON, "Australia/Lord_Howe", overlap_hour="both")
    assert change.text == "clocks go back 30 min at 02:00 on Sun 05 Apr 2026"
    assert sum("01:40 occurs twice" in remark for _, remark in around(change)) == 2


@pytest.mark.parametrize(
    ("text", "timezone"),
    [
        ("30 2 * * *", "UTC"),
        ("30 2 * * *", "Asia/Tokyo"),
        ("15m", BERLIN),
        ("0 9 1 4 *", BERLIN),
    ],
)
def test_there_is_no_note_without_a_change_between_fires(text: str, timezone: str):
    assert preview_fires(text, timezone, NOON).change is None


def test_an_armed_fire_counts_for_the_change_too():
    seen = preview_fires("every 2 hours", BERLIN, SPRING, armed=SPRING + timedelta(minutes=1))
    assert seen.change is not None
    assert seen.change.fires[0].local == "Sun 29 Mar 2026 01:01 CET"
