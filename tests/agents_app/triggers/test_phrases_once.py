"""Phrases that fire one time, read on Saturday 9 May 2026 at 10:00 in New York."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents_app.errors import TriggerParseError
from agents_app.triggers import OnceTrigger, parse_when, zone

NEW_YORK = zone("America/New_York")
NOW = datetime(2026, 5, 9, 14, tzinfo=UTC)
# Clocks go from 02:00 to 03:00 on 8 March 2026, and from 02:00 back to 01:00 on 1 November.
BEFORE_SPRING = datetime(2026, 3, 7, 17, tzinfo=UTC)
BEFORE_AUTUMN = datetime(2026, 10, 31, 17, tzinfo=UTC)


def local(phrase: str, now: datetime = NOW, **policies: Any) -> str:
    when = parse_when(phrase, now, NEW_YORK, **policies)
    assert isinstance(when.trigger, OnceTrigger)
    assert when.once
    assert when.trigger.at.tzinfo is UTC
    return f"{when.trigger.at.astimezone(NEW_YORK):%a %d %b %Y %H:%M:%S %Z}"


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("in 30 minutes", timedelta(minutes=30)),
        ("in a minute", timedelta(minutes=1)),
        ("in an hour", timedelta(hours=1)),
        ("in a week", timedelta(weeks=1)),
        ("in 30 seconds", timedelta(seconds=30)),
        ("in 2 hrs", timedelta(hours=2)),
        ("in 3 d", timedelta(days=3)),
        ("IN  2\tWeeks ", timedelta(weeks=2)),
    ],
)
def test_in_counts_elapsed_time(phrase, expected):
    assert parse_when(phrase, NOW, NEW_YORK).trigger == OnceTrigger("", NOW + expected)


def test_in_a_day_is_24_hours_also_when_the_clocks_change():
    assert local("in 1 day", BEFORE_SPRING) == "Sun 08 Mar 2026 13:00:00 EDT"


def test_in_keeps_the_fraction_of_a_second():
    now = NOW + timedelta(microseconds=250_000)
    when = parse_when("in 1 second", now, NEW_YORK)
    assert when.trigger.expression == "at 2026-05-09T14:00:01.250000Z"


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("at 17:30", "Sat 09 May 2026 17:30:00 EDT"),
        ("at 9:59", "Sun 10 May 2026 09:59:00 EDT"),
        ("at 10:00", "Sun 10 May 2026 10:00:00 EDT"),
        ("at 9am", "Sun 10 May 2026 09:00:00 EDT"),
        ("at 5 pm", "Sat 09 May 2026 17:00:00 EDT"),
        ("at 11:45PM", "Sat 09 May 2026 23:45:00 EDT"),
        ("at 12am", "Sun 10 May 2026 00:00:00 EDT"),
        ("at 12 pm", "Sat 09 May 2026 12:00:00 EDT"),
        ("at noon", "Sat 09 May 2026 12:00:00 EDT"),
        ("at midnight", "Sun 10 May 2026 00:00:00 EDT"),
    ],
)
def test_at_is_today_or_else_tomorrow(phrase, expected):
    assert local(phrase) == expected


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("today at 17:00", "Sat 09 May 2026 17:00:00 EDT"),
        ("tomorrow", "Sun 10 May 2026 09:00:00 EDT"),
        ("tomorrow at noon", "Sun 10 May 2026 12:00:00 EDT"),
        ("next monday", "Mon 11 May 2026 09:00:00 EDT"),
        ("next fri at 5pm", "Fri 15 May 2026 17:00:00 EDT"),
        ("on 2026-06-01", "Mon 01 Jun 2026 09:00:00 EDT"),
        ("on 2026-06-01 at 12:00", "Mon 01 Jun 2026 12:00:00 EDT"),
        ("on 2026-06-01 12:00", "Mon 01 Jun 2026 12:00:00 EDT"),
        ("on 2026-12-01 at 9 am", "Tue 01 Dec 2026 09:00:00 EST"),
    ],
)
def test_a_day_is_named_and_the_time_may_be_left_out(phrase, expected):
    assert local(phrase) == expected


def test_next_saturday_is_never_today_even_when_its_time_is_still_to_come():
    assert local("next saturday at 17:00") == "Sat 16 May 2026 17:00:00 EDT"


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("2026-06-01T12:00", "Mon 01 Jun 2026 12:00:00 EDT"),
        ("2026-06-01 12:00", "Mon 01 Jun 2026 12:00:00 EDT"),
        ("at 2026-06-01T12:00:30", "Mon 01 Jun 2026 12:00:30 EDT"),
        ("2026-06-01T12:00Z", "Mon 01 Jun 2026 08:00:00 EDT"),
        ("on 2026-06-01T12:00+02:00", "Mon 01 Jun 2026 06:00:00 EDT"),
        ("2026-06-01 12:00:00-0530", "Mon 01 Jun 2026 13:30:00 EDT"),
    ],
)
def test_an_iso_time_is_local_unless_it_has_an_offset(phrase, expected):
    assert local(phrase) == expected


@pytest.mark.parametrize("phrase", ["at 02:30", "tomorrow at 02:30", "on 2026-03-08 at 02:30"])
def test_a_time_in_the_gap_follows_the_policy(phrase):
    assert local(phrase, BEFORE_SPRING) == "Sun 08 Mar 2026 03:30:00 EDT"
    assert local(phrase, BEFORE_SPRING, gap="next_valid") == "Sun 08 Mar 2026 03:00:00 EDT"


def test_skip_moves_a_time_of_day_to_the_next_day_and_refuses_a_named_day():
    assert local("at 02:30", BEFORE_SPRING, gap="skip") == "Mon 09 Mar 2026 02:30:00 EDT"
    with pytest.raises(TriggerParseError, match="daylight saving starts"):
        local("tomorrow at 02:30", BEFORE_SPRING, gap="skip")


@pytest.mark.parametrize("phrase", ["at 01:30", "tomorrow at 01:30", "on 2026-11-01 at 01:30"])
@pytest.mark.parametrize(
    ("overlap_hour", "expected"), [("first", "EDT"), ("second", "EST"), ("both", "EDT")]
)
def test_a_time_in_the_repeated_hour_follows_the_policy(phrase, overlap_hour, expected):
    found = local(phrase, BEFORE_AUTUMN, overlap_hour=overlap_hour)
    assert found == f"Sun 01 Nov 2026 01:30:00 {expected}"


BETWEEN_THE_PASSES = datetime(2026, 11, 1, 6, 15, tzinfo=UTC)


def test_after_the_first_pass_a_time_of_day_is_tomorrows():
    assert local("at 01:30", BETWEEN_THE_PASSES) == "Mon 02 Nov 2026 01:30:00 EST"


def test_after_the_first_pass_a_time_of_today_is_past_unless_both_count():
    with pytest.raises(TriggerParseError, match="is in the past"):
        local("today at 01:30", BETWEEN_THE_PASSES)
    both = local("today at 01:30", BETWEEN_THE_PASSES, overlap_hour="both")
    assert both == "Sun 01 Nov 2026 01:30:00 EST"


def test_the_day_is_that_of_the_zone_and_not_of_utc():
    late = datetime(2026, 5, 10, 2, tzinfo=UTC)  # still the 9th in New York
    assert local("tomorrow", late) == "Sun 10 May 2026 09:00:00 EDT"


def test_the_last_day_of_the_calendar_can_be_named():
    assert local("on 9999-12-31 at 18:59") == "Fri 31 Dec 9999 18:59:00 EST"
    with pytest.raises(TriggerParseError, match="after the year 9999"):
        local("on 9999-12-31 at 19:00")


@pytest.mark.parametrize(
    "phrase",
    [
        "on 2020-01-01",
        "on 0001-01-01",
        "on 1970-01-01",
        "on 2026-05-09 at 10:00",
        "today at 09:00",
        "at 2026-05-09T14:00:00Z",
        "2026-05-09T09:59",
    ],
)
def test_what_is_past_is_refused_as_past(phrase):
    with pytest.raises(TriggerParseError, match="is in the past; give a time in the future"):
        parse_when(phrase, NOW, NEW_YORK)


def test_what_is_past_can_be_read_when_asked():
    when = parse_when("on 2020-01-01", NOW, NEW_YORK, allow_past=True)
    assert when.trigger.expression == "at 2020-01-01T14:00:00Z"
    when = parse_when("at 2020-01-01T14:00:00Z", NOW, NEW_YORK, allow_past=True)
    assert when.trigger.expression == "at 2020-01-01T14:00:00Z"


@pytest.mark.parametrize("phrase", ["in 9999999 days", "tomorrow", "next monday"])
def test_what_lies_beyond_the_calendar_is_refused_in_words(phrase):
    the_last_day = datetime(9999, 12, 31, 12, tzinfo=UTC)
    with pytest.raises(TriggerParseError, match="after the year 9999"):
        parse_when(phrase, the_last_day, NEW_YORK)
