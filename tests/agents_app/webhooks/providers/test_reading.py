"""Bodies that are no JSON, or JSON that two readers would read in two ways."""

import pytest

from agents_app.webhooks.providers import Unparseable, read_json
from agents_app.webhooks.providers.reading import as_text, text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"payload=%7B%7D",
        b"\xff\xfe{}",
        b'{"a": 1, "a": 2}',
        b"NaN",
        b"[-Infinity]",
        b"1e999",
        b"1" * 5000,
        b"[" * 100_000,
        b'{"a":' * 100_000,
        "{}".encode("utf-16"),
    ],
    ids=lambda body: repr(body[:16]),
)
def test_what_cannot_be_read_safely_is_unparseable_and_says_why(body):
    read = read_json(body)
    assert isinstance(read, Unparseable)
    assert read.reason


def test_ordinary_json_is_read():
    assert read_json('{"a": [1, 2.5, null, "\u2603"]}'.encode()) == {"a": [1, 2.5, None, "\u2603"]}


def test_a_text_has_nothing_that_a_database_or_a_terminal_stumbles_over():
    assert text(read_json(rb'"a\u0000b\ud800c\u001b[2J\n\td"')) == "abc[2J\n\td"


def test_long_texts_are_cut_with_a_mark():
    assert text("x" * 4000) == "x" * 4000
    assert text("x" * 4001) == "x" * 4000 + "..."
    assert as_text(["x" * 5000]) == '["' + "x" * 3998 + "..."


@pytest.mark.parametrize("value", [None, 1, True, [], {}, "", "\x00"])
def test_what_is_no_text_is_absent(value):
    assert text(value) is None


def test_no_text_for_people_has_a_control_that_a_terminal_obeys():
    controls = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
    assert text({"title": f"a{controls}b"}, "title") == "a\t\nb"
