"""The three policies for the hour that is missing and the three for the hour that comes twice."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agents_app.triggers import fires_between, next_fire, parse_trigger, zone

Period = tuple[datetime, datetime]

NEW_YORK = zone("America/New_York")
LORD_HOWE = zone("Australia/Lord_Howe")

# Clocks go from 02:00 to 03:00 on 8 March 2026, and from 02:00 back to 01:00 on 1 November.
SPRING = datetime(2026, 3, 8, 5, tzinfo=UTC), datetime(2026, 3, 8, 10, tzinfo=UTC)
AUTUMN = datetime(2026, 11, 1, 4, tzinfo=UTC), datetime(2026, 11, 1, 9, tzinfo=UTC)


def local_fires(
    expression: str, period: Period, in_zone: ZoneInfo = NEW_YORK, **policies: Any
) -> list[str]:
    fires = fires_between(parse_trigger(expression), *period, in_zone, 100, **policies)
    return [fire.astimezone(in_zone).strftime("%H:%M %Z") for fire in fires]


def test_a_fixed_time_in_the_gap_is_shifted_by_the_length_of_the_gap():
    assert local_fires("30 2 * * *", SPRING) == ["03:30 EDT"]


def test_next_valid_fires_a_time_in_the_gap_when_the_gap_ends():
    assert local_fires("30 2 * * *", SPRING, gap="next_valid") == ["03:00 EDT"]


def test_skip_drops_a_time_in_the_gap():
    assert local_fires("30 2 * * *", SPRING, gap="skip") == []


def test_two_times_that_shift_onto_one_instant_fire_once():
    assert local_fires("0 2,3 * * *", SPRING) == ["03:00 EDT"]


def test_several_times_in_the_gap_fire_once_with_next_valid():
    assert local_fires("0,20,40 2 * * *", SPRING, gap="next_valid") == ["03:00 EDT"]


def test_a_shifted_fire_does_not_hide_a_regular_one_that_comes_before_it():
    # Lord Howe leaves out 02:00 to 02:30: 02:15 becomes 02:45, and 02:30 is still earlier.
    period = datetime(2026, 10, 3, 14, tzinfo=UTC), datetime(2026, 10, 3, 18, tzinfo=UTC)
    assert local_fires("15,30 2 * * *", period, LORD_HOWE) == ["02:30 +11", "02:45 +11"]


@pytest.mark.parametrize(
    ("overlap_hour", "expected"),
    [
        ("first", ["01:30 EDT"]),
        ("second", ["01:30 EST"]),
        ("both", ["01:30 EDT", "01:30 EST"]),
    ],
)
def test_a_fixed_time_in_the_repeated_hour_fires_as_the_policy_says(overlap_hour, expected):
    assert local_fires("30 1 * * *", AUTUMN, overlap_hour=overlap_hour) == expected


def test_a_fixed_time_in_the_repeated_hour_does_not_fire_again_in_its_second_pass():
    quarter_past_one_again = datetime(2026, 11, 1, 6, 15, tzinfo=UTC)
    fire = next_fire(parse_trigger("30 1 * * *"), quarter_past_one_again, NEW_YORK)
    assert fire == datetime(2026, 11, 2, 6, 30, tzinfo=UTC)


@pytest.mark.parametrize("gap", ["shift", "next_valid", "skip"])
@pytest.mark.parametrize("overlap_hour", ["first", "second", "both"])
def test_a_wildcard_follows_the_real_clock_whatever_the_policies(gap, overlap_hour):
    chosen = {"gap": gap, "overlap_hour": overlap_hour}
    assert local_fires("*/30 1-3 * * *", SPRING, **chosen) == [
        "01:00 EST",
        "01:30 EST",
        "03:00 EDT",
        "03:30 EDT",
    ]
    hourly = local_fires("0 * * * *", AUTUMN, **chosen)
    assert hourly == ["01:00 EDT", "01:00 EST", "02:00 EST", "03:00 EST", "04:00 EST"]


def test_hours_written_out_are_fixed_times_and_not_a_wildcard():
    assert local_fires("0 0-3 * * *", AUTUMN) == ["01:00 EDT", "02:00 EST", "03:00 EST"]


def test_a_time_that_falls_into_the_gap_every_year_never_fires_with_skip():
    trigger = parse_trigger("30 2 * 3 0#2")  # the Sunday of the change itself
    assert next_fire(trigger, SPRING[0], NEW_YORK, gap="skip") is None


def test_an_unknown_policy_is_refused():
    with pytest.raises(ValueError, match="unknown policy"):
        next_fire(parse_trigger("30 2 * * *"), SPRING[0], NEW_YORK, gap="jump")  # type: ignore[arg-type]
