"""Durations with decimals."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app.errors import TriggerParseError
from agents_app.triggers import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1.5h", 5400),
        ("1.1h", 3960),
        ("0.25s", 0.25),
        ("10 min", 600),
        ("10mins", 600),
        ("2HRS", 7200),
        ("1 day", 86400),
        ("\t2days\n", 172800),
    ],
)
def test_a_number_and_a_unit_make_a_duration(text, seconds):
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "5",
            "m",
            "0s",
            "0.0h",
            "-5m",
            ".5h",
            "1.h",
            "1e3s",
            "1w",
            "5x",
            "1h30m",
            "0.0000001s",
        ),
        *("\uff15m", "5\u017f", "5\u00a0m", "9" * 29 + "d", "9" * 5000 + "d", "1" + "0" * 20 + "s"),
    ],
)
def test_anything_else_is_refused_with_an_example(text):
    with pytest.raises(TriggerParseError, match="invalid duration"):
        parse_duration(text)


@given(st.text() | st.text("0123456789. secmindayhr\uff11"))
def test_no_text_makes_the_parser_raise_anything_but_its_own_error(text):
    try:
        assert parse_duration(text) > timedelta(0)
    except TriggerParseError as error:
        assert error.text == text
