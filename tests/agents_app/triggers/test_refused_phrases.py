"""What is no "when" is refused: where it went wrong, what to do, and every form there is."""

import time
from datetime import UTC, datetime

import pytest

from agents_app.errors import TriggerParseError
from agents_app.triggers import ACCEPTED, parse_trigger, parse_when, zone
from agents_app.triggers.accepted import ACCEPTED_FORMS

NEW_YORK = zone("America/New_York")
NOW = datetime(2026, 5, 9, 14, tzinfo=UTC)


def refusal(phrase: str) -> TriggerParseError:
    with pytest.raises(TriggerParseError) as caught:
        parse_when(phrase, NOW, NEW_YORK)
    return caught.value


@pytest.mark.parametrize("form", [form for forms in ACCEPTED_FORMS for form in forms])
def test_every_form_that_a_refusal_lists_is_understood(form):
    assert form in ACCEPTED
    assert parse_when(form, NOW, NEW_YORK).text == form


@pytest.mark.parametrize(
    ("phrase", "position"),
    [
        ("when the moon is full", 0),
        ("in", 2),
        ("in 5", 4),
        ("in 1.5 hours", 3),
        ("in five minutes", 3),
        ("in 0 minutes", 3),
        ("in 5 ms", 5),
        ("in 5 months", 5),
        ("in 5ms", 3),
        ("in a while", 3),
        ("in 5 minutes please", 13),
        ("in 99999999999999999999 minutes", 3),
        ("  at 24:00", 5),
        ("at 9", 3),
        ("at 13pm", 3),
        ("at 0am", 3),
        ("at 17:0", 3),
        ("at 17:00:00", 3),
        ("at 5pm pm", 7),
        ("today", 5),
        ("tomorrow 09:00", 9),
        ("tomorrow at", 11),
        ("next week", 5),
        ("on monday", 3),
        ("on 2026-6-1", 3),
        ("on 2027-02-30", 3),
        ("on 0000-01-01", 3),
        ("on 2026-06-01 at 24:00", 17),
        ("on 2026-06-01 24:00", 14),
        ("2026-06-01", 0),
        ("2026-06-01T12:00+99:00", 0),
        ("at 0001-01-01T00:00+14:00", 3),
        ("every", 5),
        ("every 5", 7),
        ("every 15x", 6),
        ("every -5 minutes", 6),
        ("every funday", 6),
        ("every tues", 6),
        ("every day 09:00", 10),
        ("every 2 days at 09:00", 13),
        ("every monday and", 16),
        ("every monday, at 09:00", 14),
        ("every week on funday", 14),
        ("every month on the 32nd", 19),
        ("every month on the first", 19),
        ("hourly at 10:00", 7),
        ("every\u00a0day", 5),
        ("every day at \uff10\uff19:00", 13),
        ("every wee\u212a", 9),
        ("every day\x00", 6),
        ("every day at 09:00 Europe/Berlln", 19),
        ("0 9 * * 8", 8),
    ],
)
def test_a_refusal_has_the_position_and_the_accepted_forms(phrase, position):
    error = refusal(phrase)
    assert (error.position, error.text, error.accepted) == (position, phrase, ACCEPTED)


@pytest.mark.parametrize(
    ("phrase", "hint"),
    [
        ("every other day", 'write "every 2 days" instead'),
        ("every weekend", 'write "every saturday and sunday" instead'),
        ("monthly", 'write "every month on the 1st" instead'),
        ("every 15x", 'expected a whole number and a unit, such as "30 minutes"'),
        ("every day at 9am and friday", "expected a time such as 17:00"),
        ("every day and 5pm", 'nothing can follow "every day"'),
        ("tomorrow 9am", 'write "at" before a time: "at 9am"'),
        ("in 1.5 hours", 'at "1.5" (character 4): expected a whole number'),
        ("every hour at 09:00", 'nothing can follow "every hour"'),
        ("at 09:00 europe/berlln", "did you mean Europe/Berlin?"),
        ("on 2027-02-30", "there is no such date"),
        ("every 99999999999 weeks", "is too long"),
        ("every 9999999 days", "can never fire"),
        ("", "enter a schedule, for example"),
        ("\u00bd hour", "is not ASCII"),
    ],
)
def test_a_refusal_says_what_to_do(phrase, hint):
    assert hint in str(refusal(phrase))


@pytest.mark.fault("F79")
def test_what_never_fires_with_these_policies_is_refused():
    sunday_of_the_change = "30 2 * 3 0#2"
    with pytest.raises(TriggerParseError, match="can never fire"):
        parse_when(sunday_of_the_change, NOW, NEW_YORK, gap="skip")
    assert parse_when(sunday_of_the_change, NOW, NEW_YORK).trigger


@pytest.mark.parametrize("text", ["0.999999s", "0.5s", "0.01m"])
@pytest.mark.fault("F79")
def test_an_interval_of_less_than_a_second_is_refused(text):
    with pytest.raises(TriggerParseError, match="is less than one second; write at least 1s"):
        parse_when(text, NOW, NEW_YORK)
    assert parse_when("1s", NOW, NEW_YORK).trigger
    assert parse_trigger(text).expression  # of a row that an earlier version has written


@pytest.mark.parametrize(
    "text", ["* * * * * *", "@secondly", "0 0 30 2 *", "0 0 31 4,6 *", "60 * * * *"]
)
@pytest.mark.fault("F79")
def test_a_cron_expression_with_seconds_or_without_a_date_is_refused(text):
    refusal(text)


@pytest.mark.parametrize("text", ["in 5 \x00minutes", "\ud800", "every \udfff day", "@\x1b[31m"])
def test_a_message_holds_nothing_that_a_terminal_or_a_database_would_choke_on(text):
    message = str(refusal(text))
    assert message.isprintable()
    message.encode()


@pytest.mark.parametrize(
    "text",
    [
        "in " * 400_000,
        "9" * 1_000_000,
        " " * 1_000_000,
        "every mon" + ",mon" * 300_000,
        "*" * 10**6,
    ],
)
def test_a_text_of_any_length_is_refused_at_once(text):
    started = time.process_time()
    refusal(text)
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize("text", ["in 30 minutes", "at 17:00", "tomorrow", "on 2030-06-01"])
def test_a_text_that_depends_on_the_current_time_cannot_be_stored(text):
    with pytest.raises(TriggerParseError, match="depends on the current time") as caught:
        parse_trigger(text)
    assert caught.value.accepted == ACCEPTED


@pytest.mark.parametrize("text", ["every day at 09:00 UTC", "0 9 * * * Europe/Berlin", "15m utc"])
def test_a_kept_text_names_no_zone(text):
    with pytest.raises(TriggerParseError, match=r"leave out (UTC|Europe/Berlin)"):
        parse_trigger(text)
