"""`parse_when`, the expressions that are kept, and triggers that fire once."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from agents_app.triggers import (
    OnceTrigger,
    fires_between,
    last_fire_between,
    next_fire,
    parse_trigger,
    parse_when,
    upcoming,
    zone,
)
from agents_app.triggers.accepted import ACCEPTED_FORMS

NEW_YORK, BERLIN = zone("America/New_York"), zone("Europe/Berlin")
NOW = datetime(2026, 5, 9, 14, tzinfo=UTC)
FORMS = [form for forms in ACCEPTED_FORMS for form in forms]


@pytest.mark.parametrize(
    "text", [*FORMS, "1.000001s", "999999d", "*/5 8-18 * * MON-FRI", "@yearly"]
)
def test_an_expression_is_read_back_as_the_same_trigger(text):
    trigger = parse_when(text, NOW + timedelta(microseconds=1), NEW_YORK).trigger
    again = parse_trigger(trigger.expression)
    assert again == trigger
    assert again.expression == trigger.expression


def test_the_given_zone_holds_unless_the_text_names_one():
    plain = parse_when("every day at 09:00", NOW, NEW_YORK)
    assert (plain.zone, plain.names_zone) == (NEW_YORK, False)
    named = parse_when("every day at 09:00 europe/BERLIN ", NOW, NEW_YORK)
    assert (named.zone, named.names_zone) == (BERLIN, True)
    assert named.trigger == plain.trigger


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at 17:00 Europe/Berlin", "2026-05-09T15:00:00+00:00"),
        ("tomorrow Asia/Tokyo", "2026-05-10T00:00:00+00:00"),
        ("2026-06-01 12:00 UTC", "2026-06-01T12:00:00+00:00"),
        ("0 9 * * * Asia/Tokyo", "2026-05-10T00:00:00+00:00"),
        ("@daily utc", "2026-05-10T00:00:00+00:00"),
    ],
)
def test_a_zone_at_the_end_goes_with_every_form(text, expected):
    when = parse_when(text, NOW, NEW_YORK)
    (fire,) = upcoming(when.trigger, NOW, when.zone, 1)
    assert fire.isoformat() == expected


def test_only_one_shots_are_once():
    assert parse_when("tomorrow", NOW, NEW_YORK).once
    assert not parse_when("every day", NOW, NEW_YORK).once
    assert not parse_when("15m", NOW, NEW_YORK).once


def test_now_may_be_given_in_any_zone():
    tokyo = timezone(timedelta(hours=9))
    assert parse_when("in 5 minutes", NOW.astimezone(tokyo), NEW_YORK) == parse_when(
        "in 5 minutes", NOW, NEW_YORK
    )


def test_the_text_is_kept_and_takes_no_part_in_comparison():
    trigger = parse_when("in 5 minutes", NOW, NEW_YORK).trigger
    assert trigger.text == "in 5 minutes"
    assert trigger == OnceTrigger("something else", NOW + timedelta(minutes=5))


def test_an_instant_can_be_stored_unchanged():
    once = OnceTrigger("", datetime(2026, 6, 1, 12, tzinfo=UTC))
    assert once.expression == "at 2026-06-01T12:00:00Z"
    for text in (once.expression, "2026-06-01T14:00+02:00", "on 2026-06-01 12:00Z"):
        assert parse_trigger(text) == once


def test_an_instant_that_is_long_past_can_still_be_read_back():
    assert parse_trigger("at 2001-01-01T00:00:00Z") == OnceTrigger(
        "", datetime(2001, 1, 1, tzinfo=UTC)
    )


def test_a_trigger_that_fires_once_fires_after_every_instant_before_it():
    once = OnceTrigger("", NOW)
    before = NOW - timedelta(microseconds=1)
    assert next_fire(once, before, NEW_YORK) == NOW
    assert next_fire(once, NOW, NEW_YORK) is None
    assert upcoming(once, before, NEW_YORK, 5) == [NOW]


@pytest.mark.parametrize(
    ("start", "end", "expected"), [(-1, 0, [NOW]), (-1, 1, [NOW]), (0, 1, []), (-2, -1, [])]
)
def test_a_trigger_that_fires_once_lies_in_a_period_or_not(start, end, expected):
    once, hour = OnceTrigger("", NOW), timedelta(hours=1)
    period = NOW + start * hour, NOW + end * hour
    assert fires_between(once, *period, NEW_YORK, 10) == expected
    assert last_fire_between(once, *period, NEW_YORK) == (expected[0] if expected else None)
