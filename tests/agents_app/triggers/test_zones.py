"""Zone names, right and wrong."""

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app.errors import TriggerParseError
from agents_app.triggers import zone


def test_an_iana_name_gives_its_zone():
    assert zone("America/New_York") is zone("America/New_York")
    assert zone("UTC") == ZoneInfo("UTC")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("europe/london", "Europe/London"),
        ("America/New York", "America/New_York"),
        ("new york", "America/New_York"),
        ("utc ", "UTC"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_one_that_was_meant(name, meant):
    with pytest.raises(TriggerParseError, match=rf"did you mean {meant}\?"):
        zone(name)


@pytest.mark.parametrize(
    "name",
    ["", "localtime", "Factory", "America", "/etc/passwd", "../UTC", "right/UTC", "\0", "x" * 9999],
)
def test_what_is_not_a_zone_is_refused(name):
    with pytest.raises(TriggerParseError, match="unknown time zone"):
        zone(name)


@given(st.text(max_size=20))
def test_no_text_raises_anything_but_the_parse_error(name):
    try:
        assert zone(name).key == name
    except TriggerParseError as error:
        assert error.field == "timezone"
