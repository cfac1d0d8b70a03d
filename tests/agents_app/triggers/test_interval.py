"""`interval:` text, and the next run of an interval schedule."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agents_app
from agents_app.errors import DroverError, IntervalParseError
from agents_app.triggers import (
    calculate_next_trigger,
    is_schedule_due,
    parse_interval,
    parse_interval_trigger,
    parse_trigger,
)

NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("5", "missing_unit", 'Missing time unit. Expected format: "{number}{unit}"'),
        ("5.5m", "decimal", "Decimal values are not supported"),
        ("0m", "zero", "Zero interval is not allowed"),
        ("-5m", "negative", "Negative intervals are not allowed"),
        ("5x", "invalid_unit", 'Invalid time unit "x". Valid units are: s, m, h, d'),
        ("", "empty", "Interval cannot be empty"),
        ("m", "missing_number", "Missing number"),
        ("5 m 5", "invalid_format", "Invalid interval format"),
        ("9" * 400 + "d", "too_long", "too long"),
        ("\uff15m", "invalid_format", "Invalid interval format"),
        ("5m\u00a0", "invalid_format", "Invalid interval format"),
    ],
)
def test_a_bad_interval_is_refused_by_kind_and_in_words(text, kind, message):
    with pytest.raises(IntervalParseError) as caught:
        parse_interval(text)
    assert caught.value.kind == kind
    assert message in str(caught.value)
    assert caught.value.interval == text


def test_the_errors_of_the_library_have_one_base_and_carry_their_context():
    for error in (
        agents_app.IntervalParseError("no", interval="5x", kind="invalid_unit"),
        agents_app.ScheduleTriggerError("no", {"agent": "reporter"}),
        agents_app.SchedulerShutdownError("late", timed_out=True, running_job_count=2),
    ):
        assert isinstance(error, agents_app.SchedulerError) and isinstance(error, DroverError)
    assert agents_app.ScheduleTriggerError("no", {"agent": "reporter"}).context == {
        "agent": "reporter"
    }
    late = agents_app.SchedulerShutdownError("late", timed_out=True, running_job_count=2)
    assert (late.timed_out, late.running_job_count) == (True, 2)


@given(st.integers(1, 10**6), st.sampled_from("smhdSMHD"))
def test_a_number_and_a_unit_are_milliseconds(number, unit):
    seconds = {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit.lower()]
    assert parse_interval(f" {number} {unit}\n") == number * seconds * 1000


@given(st.text() | st.text("0123456789.-+ smhdx\uff11"))
def test_no_text_makes_the_parser_raise_anything_but_its_own_error(text):
    try:
        assert parse_interval(text) > 0
    except IntervalParseError as error:
        assert error.kind


@given(st.integers(1, 10**6), st.sampled_from(["s", "M", " h", "\td"]), st.integers(0, 40))
def test_an_interval_read_again_as_any_trigger_is_the_same_span(number, unit, zeros):
    text = "0" * zeros + f"{number}{unit}"
    assert parse_trigger(text) == parse_interval_trigger(text)


def test_an_interval_that_no_date_can_hold_is_refused_as_a_trigger():
    with pytest.raises(IntervalParseError) as caught:
        parse_interval_trigger("9007199254740993s")
    assert caught.value.kind == "too_long"


def test_the_first_run_is_due_at_once():
    assert calculate_next_trigger(None, "1d", now=NOW, rand=0.5) == NOW


def test_the_interval_counts_from_the_last_completion():
    last = NOW - timedelta(minutes=2)
    expected = NOW + timedelta(minutes=3)
    assert calculate_next_trigger(last, "5m", now=NOW, rand=0.5) == expected


def test_a_next_run_in_the_past_becomes_now():
    assert calculate_next_trigger(NOW - timedelta(days=9), "5m", now=NOW, rand=0) == NOW


def test_a_next_run_past_the_end_of_the_calendar_is_refused():
    with pytest.raises(IntervalParseError):
        calculate_next_trigger(NOW, "99999999d", now=NOW, rand=0)


@given(
    st.timedeltas(timedelta(0), timedelta(hours=2)),
    st.none() | st.floats(-20, 30),
    st.floats(0, 1),
)
def test_jitter_adds_at_most_ten_percent_and_never_takes_away(ago, jitter_percent, rand):
    last = NOW - ago
    plain = calculate_next_trigger(last, "1h", now=NOW, rand=rand)
    spread = calculate_next_trigger(last, "1h", jitter_percent, now=NOW, rand=rand)
    assert plain <= spread <= plain + timedelta(minutes=6)


def test_a_schedule_is_due_from_its_instant_on():
    assert is_schedule_due(NOW, NOW)
    assert is_schedule_due(NOW - timedelta(seconds=1), NOW)
    assert not is_schedule_due(NOW + timedelta(microseconds=1), NOW)


def test_the_functions_for_other_python_code_use_the_clock_as_documented():
    """Guard: the documented calls have no clock. Without the defaults they raise a TypeError."""
    before = datetime.now(UTC)
    first = agents_app.calculate_next_trigger(None, "5m")
    assert before <= first <= datetime.now(UTC)
    assert agents_app.is_schedule_due(first)
    later = agents_app.calculate_next_trigger(before, "1h", 5)
    assert timedelta(hours=1) <= later - before <= timedelta(hours=1, minutes=3)
    assert not agents_app.is_schedule_due(later)
    assert len({agents_app.calculate_next_trigger(before, "1h", 5) for _ in range(20)}) > 1
