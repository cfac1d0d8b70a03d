"""Files that are not what they should be: of something else, or just being saved."""

import pytest

from agents_app.rules.source import FILE_NAME
from tests.agents.rules.ruling import Rules, at, book, told


def test_of_a_file_of_something_else_the_first_errors_are_kept_and_the_rest_is_counted(
    rules: Rules, caplog: pytest.LogCaptureFixture
):
    (rules.project / FILE_NAME).write_text("x\n" * 2000)
    rules.tick(at("12:00"))
    *first, last = book().errors
    assert [error["line"] for error in first] == list(range(1, 101))
    assert (last["code"], last["line"]) == ("more_errors", 101)
    assert last["problem"] == "1900 more lines, from this one on, are no rules"
    (once,) = told("rules.invalid")
    assert once.endswith(": x, and 1999 more")
    logged = [record.msg for record in caplog.records if "expected" in record.msg]
    assert [line["line"] for line in logged] == list(range(1, 102))


def test_bytes_that_are_no_text_are_wrong_in_their_line_alone(rules: Rules):
    lines = (
        b"# \xfcbung",
        b"[a] every 1m => resume all",
        b'[b] every 1m => run "\xff"',
        b"# \xc3\xbc",
    )
    (rules.project / FILE_NAME).write_bytes(b"\n".join(lines))
    assert rules.ticks(at("12:00"), at("12:01")) == [("a", at("12:01"))]
    first, second = book().errors
    assert (first["line"], first["column"], first["code"]) == (1, 3, "bad_character")
    assert first["problem"] == "the byte 0xFC is not UTF-8"
    assert (second["line"], second["problem"]) == (3, "the byte 0xFF is not UTF-8")
    # Neither a database nor JSON takes halves of characters.
    assert "".join(f"{error['raw']}{error['problem']}" for error in book().errors).isascii()
