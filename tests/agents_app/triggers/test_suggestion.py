"""What was likely meant by a text that cannot be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app.triggers import check_phrase, suggest

WORDS = st.sampled_from(
    ["every", "evry", "mondey", "at", "9", "9.30", "on", "the", "3", "22", "in", "5min", "weekdays"]
)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("every mondey at 9", "every monday at 09:00"),
        ("Evry day at 09:00", "every day at 09:00"),
        ("weekdays at 9", "every weekday at 09:00"),
        ("every weekend", "every saturday and sunday"),
        ("every other day", "every 2 days"),
        ("every day 9am", "every day at 9am"),
        ("mondays at 9.30", "every monday at 09:30"),
        ("every day at 9 o'clock", "every day at 09:00"),
        ("every month on the 22", "every month on the 22nd"),
        ("every month on the 11", "every month on the 11th"),
        ("every tuesday and thrusday at 8", "every tuesday and thursday at 08:00"),
        ("tomorow at 5", "tomorrow at 05:00"),
        ("0 0 9 * * *", "0 9 * * *"),
        ("*/90 * * * *", "every 90 minutes"),
        ("every fortnight", "every 2 weeks"),
        ("every year", "@yearly"),
    ],
)
def test_a_slip_is_mended(text: str, meant: str):
    assert suggest(text) == meant


@pytest.mark.parametrize("text", ["every now and then", "", "<script>", "99 99 99 99 99"])
def test_nothing_is_suggested_where_nothing_can_be_guessed(text: str):
    assert suggest(text) == ""


@given(st.lists(WORDS, min_size=1, max_size=6).map(" ".join) | st.text(max_size=60))
def test_whatever_is_suggested_can_be_read(text: str):
    if meant := suggest(text):
        check_phrase(meant)
