"""Which cron texts are taken, and what is said about the others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app.errors import TriggerParseError
from agents_app.triggers import parse_cron

REFUSED = {
    "": None,
    " \t ": None,
    "@reboot": None,
    "@every 5m": None,
    "@": None,
    "* * * *": "fields",
    "0 0 9 * * *": "fields",
    "not a cron": "fields",
    "0\u00a00 * * *": "fields",
    "60 * * * *": "minute",
    "-1 * * * *": "minute",
    "1,,2 * * * *": "minute",
    "1, * * * *": "minute",
    "1-2-3 * * * *": "minute",
    "5-1 * * * *": "minute",
    "*-5 * * * *": "minute",
    "*/0 * * * *": "minute",
    "*/x * * * *": "minute",
    "*/ * * * *": "minute",
    "*/-5 * * * *": "minute",
    "*/90 * * * *": "minute",
    "5/10/2 * * * *": "minute",
    "1.5 * * * *": "minute",
    "? * * * *": "minute",
    "L * * * *": "minute",
    "H * * * *": "minute",
    "jan * * * *": "minute",
    "\uff10 0 * * *": "minute",
    "0 24 * * *": "hour",
    "0 1#2 * * *": "hour",
    "0 0 0 * *": "day-of-month",
    "0 0 32 * *": "day-of-month",
    "0 0 15W * *": "day-of-month",
    "0 0 ?,1 * *": "day-of-month",
    "0 0 30 2 *": "day-of-month",
    "0 0 30,31 feb *": "day-of-month",
    "0 0 31 4,6,9,11 ?": "day-of-month",
    "0 0 * 0 *": "month",
    "0 0 * 13 *": "month",
    "0 0 * january *": "month",
    "0 0 * mon *": "month",
    "0 0 * * 8": "day-of-week",
    "0 9 * * 1-8": "day-of-week",
    "0 9 * * fri-mon": "day-of-week",
    "0 9 * * 1#6": "day-of-week",
    "0 9 * * 1#0": "day-of-week",
    "0 9 * * #1": "day-of-week",
    "0 9 * * L": "day-of-week",
    "0 9 * * xyz": "day-of-week",
    "0 9 * * xyzL": "day-of-week",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_text_that_cannot_fire_as_meant_is_refused_with_its_field(text):
    with pytest.raises(TriggerParseError) as caught:
        parse_cron(text)
    assert caught.value.field == REFUSED[text]
    assert caught.value.text == text


def test_the_message_says_what_is_wrong_where_and_what_to_do():
    with pytest.raises(TriggerParseError) as caught:
        parse_cron("  0 24 * * *")
    assert str(caught.value) == (
        'cron expression "0 24 * * *": hour "24" must be 0-23, not 24; '
        "for example 0 9 * * * (every day at 09:00)"
    )
    assert caught.value.position == 4


def test_the_error_of_six_fields_says_that_there_is_no_field_for_seconds():
    with pytest.raises(TriggerParseError, match=r"got 6; there is no field for seconds"):
        parse_cron("0 0 9 * * *")


def test_the_error_of_an_unknown_macro_lists_the_known_ones():
    with pytest.raises(TriggerParseError, match="@hourly, @daily, @midnight, @weekly"):
        parse_cron("@fortnightly")


@pytest.mark.parametrize(
    ("macro", "fields"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
    ],
)
def test_a_macro_stands_for_its_five_fields(macro, fields):
    assert parse_cron(macro).expression == fields


def test_a_macro_is_taken_in_any_case_and_expanded():
    trigger = parse_cron(" @Weekly ")
    assert (trigger.expression, trigger.is_shorthand) == ("0 0 * * 0", True)


@pytest.mark.parametrize(
    ("expression", "follows"),
    [
        ("* * * * *", True),
        ("*/15 2 * * *", True),
        ("0 */2 * * *", True),
        ("0 2 * * *", False),
        ("0-59 0-23 * * *", False),
        ("0 2 */2 * *", False),
    ],
)
def test_a_star_in_front_of_minute_or_hour_follows_the_real_clock(expression, follows):
    assert parse_cron(expression).follows_real_clock is follows


def test_an_absurdly_long_expression_is_refused():
    with pytest.raises(TriggerParseError, match="longer than 1000"):
        parse_cron("1" * 5000 + " * * * *")


@given(st.text() | st.text("0123456789*/,-#?L @sunJAN\u00a0\uff11\u0665", max_size=40))
def test_no_text_makes_the_parser_raise_anything_but_its_own_error(text):
    try:
        trigger = parse_cron(text)
    except TriggerParseError:
        return
    assert trigger.branches


junk = st.text("0123456789*/,-#?LmonJAN", min_size=1, max_size=8)


@given(st.lists(junk, min_size=5, max_size=5).map(" ".join))
def test_five_fields_of_junk_are_taken_or_refused_by_field(text):
    try:
        parse_cron(text)
    except TriggerParseError as error:
        assert error.field is not None
