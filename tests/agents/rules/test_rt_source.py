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
