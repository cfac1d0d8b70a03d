"""Columns for a pipe, a table for a terminal, and no tricks in either."""

from datetime import UTC, datetime
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import OutputWrapper

from agents_app.cli.command import DroverCommand
from agents_app.clock import iso, local
from agents_app.console.screen import Screen
from agents_app.console.tables import cell, plain_lines, shortened
from tests.agents_app.management.calling import Terminal


def test_a_pipe_gets_plain_columns_without_trailing_blanks():
    out = StringIO()
    Screen(OutputWrapper(out)).table(("name", "count"), [("a", 1), ("longer", None)])
    assert out.getvalue() == "NAME    COUNT\na       1\nlonger  -\n"


def test_a_terminal_gets_a_table_that_takes_words_as_they_are():
    out = Terminal()
    Screen(OutputWrapper(out), colour=False).table(("name", "note"), [("a", "[red]not red[/red]")])
    assert "[red]not red[/red]" in out.getvalue()
    assert "─" in out.getvalue()


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), ("", "-"), (0, "0"), ("a\n b\tc", "a b c"), ("\x1b[31mred\x07", "red")],
)
def test_a_cell_is_one_safe_line(value: object, shown: str):
    assert cell(value) == shown


# A title, a colour, a clipboard and the same with the one-character opening.
TRICKS = "a\x1b]0;owned\x07 \x1b[31mred\x9b2J \x9d52;c;aGk=\x9cend"


class Telling(DroverCommand):
    def handle(self, *_args: object, **_options: object) -> None:
        self.screen.say(TRICKS)
        self.screen.show([TRICKS])
        self.remark(TRICKS)


def test_a_sentence_has_no_orders_for_the_terminal():
    out, err = Terminal(), Terminal()
    call_command(Telling(), stdout=out, stderr=err)
    assert out.getvalue() == "a red end\n" * 2
    assert "a red end" in err.getvalue()
    assert not {"\x9b", "\x9d", "\x07"} & set(err.getvalue())


def test_a_sentence_of_a_live_picture_has_none_either():
    out = Terminal()
    with Screen(OutputWrapper(out), colour=False).live() as show:
        show([TRICKS])
    assert "a red end" in out.getvalue()
    assert not {"\x9b", "\x9d", "\x07"} & set(out.getvalue())


def test_a_sentence_keeps_its_lines_and_its_letters():
    out = StringIO()
    Screen(OutputWrapper(out)).say("grün:\n\t- 5 €")
    assert out.getvalue() == "grün:\n\t- 5 €\n"


def test_a_long_text_ends_with_a_sign_that_it_goes_on():
    assert shortened("x" * 20, 10) == "x" * 9 + "…"
    assert shortened("x" * 10, 10) == "x" * 10
    assert shortened("", 10) == ""


def test_columns_are_as_wide_as_their_widest_cell():
    assert plain_lines([["a", "b"], ["ccc", "d"]]) == ["a    b", "ccc  d"]


def test_programs_get_utc_and_people_their_own_time():
    moment = datetime(2026, 1, 2, 3, 4, 5, 600000, tzinfo=UTC)
    assert iso(moment) == "2026-01-02T03:04:05.600000Z"
    assert local(moment, UTC) == "2026-01-02 03:04:05 UTC"
