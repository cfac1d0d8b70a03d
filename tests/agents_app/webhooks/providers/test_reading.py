"""Bodies that are not JSON, or JSON that two parsers would read differently."""

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
def test_an_ambiguous_or_invalid_body_is_unparseable_with_a_reason(body):
    read = read_json(body)
    assert isinstance(read, Unparseable)
    assert read.reason


def test_valid_json_is_read():
    assert read_json('{"a": [1, 2.5, null, "\u2603"]}'.encode()) == {"a": [1, 2.5, None, "\u2603"]}


def test_a_text_has_no_characters_that_databases_or_terminals_cannot_handle():
    assert text(read_json(rb'"a\u0000b\ud800c\u001b[2J\n\td"')) == "abc[2J\n\td"


def test_a_long_text_is_cut_and_ends_with_dots():
    assert text("x" * 4000) == "x" * 4000
    assert text("x" * 4001) == "x" * 4000 + "..."
    assert as_text(["x" * 5000]) == '["' + "x" * 3998 + "..."


@pytest.mark.parametrize("value", [None, 1, True, [], {}, "", "\x00"])
def test_a_value_that_is_not_text_is_none(value):
    assert text(value) is None


def test_a_text_keeps_only_tabs_and_line_feeds_of_all_control_characters():
    controls = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
    assert text({"title": f"a{controls}b"}, "title") == "a\t\nb"
