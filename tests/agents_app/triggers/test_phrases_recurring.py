"""Phrases that fire again and again, and what they are kept as."""

from datetime import UTC, datetime, timedelta

import pytest

from agents_app.triggers import (
    CronTrigger,
    IntervalTrigger,
    describe_cron,
    parse_trigger,
    parse_when,
    upcoming,
    zone,
)

NEW_YORK = zone("America/New_York")
NOW = datetime(2026, 5, 9, 14, tzinfo=UTC)


@pytest.mark.parametrize(
    ("phrase", "expression"),
    [
        ("every day", "0 9 * * *"),
        ("daily", "0 9 * * *"),
        ("daily at 7:30", "30 7 * * *"),
        ("every day at midnight", "0 0 * * *"),
        ("every week", "0 9 * * 1"),
        ("weekly at 10:00", "0 10 * * 1"),
        ("weekly on fri at 18:00", "0 18 * * 5"),
        ("every week on sunday", "0 9 * * 0"),
        ("every week on monday and thursday at noon", "0 12 * * 1,4"),
        ("every monday at 09:00", "0 9 * * 1"),
        ("every sat", "0 9 * * 6"),
        ("every weekday at 09:00", "0 9 * * 1-5"),
        ("every monday and friday at 09:00", "0 9 * * 1,5"),
        ("every friday, wednesday and monday at 5 pm", "0 17 * * 1,3,5"),
        ("every mon,wed,fri", "0 9 * * 1,3,5"),
        ("every mon, tue, and wed", "0 9 * * 1,2,3"),
        ("every month at 09:00", "0 9 1 * *"),
        ("every month on the 1st at 09:00", "0 9 1 * *"),
        ("every month on the 22nd", "0 9 22 * *"),
        ("every month on the last day at 23:59", "59 23 L * *"),
        ("\t EVERY\n  Monday   at  09:00 \r\n", "0 9 * * 1"),
        ("every day at 9am and 5pm", "0 9,17 * * *"),
        ("daily at 9am and at 5 pm", "0 9,17 * * *"),
        ("every weekday at 17:30, 8:30 and 12:30", "30 8,12,17 * * 1-5"),
        ("every monday and friday at noon and midnight", "0 0,12 * * 1,5"),
        ("every month on the 1st at 09:00, 17:00", "0 9,17 1 * *"),
    ],
)
def test_a_time_of_day_becomes_cron(phrase, expression):
    trigger = parse_trigger(phrase)
    assert isinstance(trigger, CronTrigger)
    assert (trigger.text, trigger.expression) == (phrase, expression)
    assert parse_when(phrase, NOW, NEW_YORK).trigger == trigger


@pytest.mark.parametrize(
    ("phrase", "every", "expression"),
    [
        ("every minute", timedelta(minutes=1), "every minute"),
        ("every hour", timedelta(hours=1), "every hour"),
        ("hourly", timedelta(hours=1), "every hour"),
        ("every 1 second", timedelta(seconds=1), "every 1 second"),
        ("every 90 seconds", timedelta(seconds=90), "every 90 seconds"),
        ("every 15 m", timedelta(minutes=15), "every 15 minutes"),
        ("every 90 mins", timedelta(minutes=90), "every 90 minutes"),
        ("every 120 minutes", timedelta(hours=2), "every 2 hours"),
        ("every 2 days", timedelta(days=2), "every 2 days"),
        ("every 14 days", timedelta(days=14), "every 2 weeks"),
        # Not "every day" and "every week": those are times of day, and these are spans.
        ("every 1 day", timedelta(days=1), "every 24 hours"),
        ("every 1 week", timedelta(days=7), "every 7 days"),
        ("every 30s", timedelta(seconds=30), "every 30 seconds"),
        ("every 15m", timedelta(minutes=15), "every 15 minutes"),
        ("EVERY 2hours", timedelta(hours=2), "every 2 hours"),
    ],
)
def test_a_number_of_units_is_elapsed_time_from_the_start(phrase, every, expression):
    trigger = parse_trigger(phrase)
    assert trigger == IntervalTrigger(phrase, every, anchor="start")
    assert trigger.expression == expression


def test_times_of_different_minutes_are_stored_as_the_phrase():
    """Guard: no cron expression has the times 09:00 and 17:30 only. With hours and minutes as two
    lists the schedule would also fire at 09:30 and 17:00."""
    trigger = parse_trigger(" Every DAY at 9am  and 17:30")
    assert isinstance(trigger, CronTrigger)
    assert trigger.expression == "every day at 9am and 17:30"
    assert parse_trigger(trigger.expression) == trigger
    fires = upcoming(trigger, NOW, NEW_YORK, 4)
    assert [f"{fire.astimezone(NEW_YORK):%d %H:%M}" for fire in fires] == [
        "09 17:30",
        "10 09:00",
        "10 17:30",
        "11 09:00",
    ]
    assert describe_cron(trigger) == "every day at 9am and 17:30"


@pytest.mark.parametrize(
    ("text", "expression"),
    [("15m", "15m"), ("1.5h", "90m"), ("90 sec", "90s"), ("24h", "1d"), ("0.25s", "0.25s")],
)
def test_a_plain_duration_counts_from_the_last_completion(text, expression):
    trigger = parse_trigger(text)
    assert isinstance(trigger, IntervalTrigger)
    assert (trigger.anchor, trigger.expression) == ("completion", expression)


def test_the_two_kinds_of_interval_are_not_the_same_trigger():
    assert parse_trigger("15m") != parse_trigger("every 15 minutes")
    assert parse_trigger("15m") == parse_trigger("900s")


def test_every_hour_counts_elapsed_time_through_the_repeated_hour():
    now = datetime(2026, 11, 1, 4, 30, tzinfo=UTC)
    fires = upcoming(parse_trigger("every hour"), now, NEW_YORK, 3)
    assert [f"{fire.astimezone(NEW_YORK):%H:%M %Z}" for fire in fires] == [
        "01:30 EDT",
        "01:30 EST",
        "02:30 EST",
    ]


def test_the_31st_comes_only_in_the_months_that_have_it():
    fires = upcoming(parse_trigger("every month on the 31st"), NOW, NEW_YORK, 3)
    assert [f"{fire:%d %b}" for fire in fires] == ["31 May", "31 Jul", "31 Aug"]


def test_the_last_day_comes_every_month():
    fires = upcoming(parse_trigger("every month on the last day"), NOW, NEW_YORK, 3)
    assert [f"{fire:%d %b}" for fire in fires] == ["31 May", "30 Jun", "31 Jul"]


def test_a_phrase_and_the_cron_expression_it_stands_for_are_equal():
    assert parse_trigger("every monday at 09:00") == parse_trigger("0 9 * * MON")
    assert hash(parse_trigger("every monday at 09:00")) == hash(parse_trigger("0 9 * * 1"))
