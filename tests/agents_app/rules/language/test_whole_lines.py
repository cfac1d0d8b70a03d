"""Whole lines: names, comments, arrows, and the text of errors."""

import pytest

from agents_app.rules.language.line_reader import MAX_LINE_LENGTH, MAX_NAME_LENGTH
from agents_app.rules.language.parse import parse_line
from tests.agents_app.rules.language.parse_one import parsed, refusal


@pytest.mark.parametrize("text", ["", " ", "\t", "\r", "# x", "  # x", "#", "\ufeff", "\ufeff# x"])
def test_a_blank_line_and_a_comment_are_no_rule(text: str):
    assert parse_line(text) is None


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("[a]", "a"),
        ("[ a ]", "a"),
        ("\t[a]", "a"),
        ("[issue #42]", "issue #42"),
        ("[a # b]", "a # b"),
        ('["a" => b]', '"a" => b'),
        ("[Größe]", "Größe"),
        (f"[{'x' * MAX_NAME_LENGTH}]", "x" * MAX_NAME_LENGTH),
    ],
)
def test_a_name_is_the_text_in_brackets(written: str, name: str):
    rule = parsed(f'{written} every 5m => run "x"')
    assert (rule.name, rule.auto_named) == (name, False)


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ('[  ] every 5m => run "x"', "bad_name", 2),
        ('[a[b]] every 5m => run "x"', "bad_name", 1),
        ('[a] [b] every 5m => run "x"', "bad_trigger", 5),
        (f'[{"x" * (MAX_NAME_LENGTH + 1)}] every 5m => run "x"', "bad_name", 2),
        ("[a]", "bad_trigger", 4),
        ("every 5m", "missing_arrow", 9),
        ("every 5m # => run", "missing_arrow", 9),
        ('every 5m -> run "x"', "missing_arrow", 10),
        ('every 5m = > run "x"', "missing_arrow", 10),
        ('every 5m=> run "x"', "bad_arrow", 9),
        ('every 5m =>run "x"', "bad_arrow", 10),
        ('at 14:30=> run "x"', "bad_arrow", 9),
        ('every 5m if alive(a)=> run "x"', "bad_arrow", 21),
        ('every 5m if idle(a) > 1h=> run "x"', "bad_arrow", 25),
        ('every 5m => => run "x"', "bad_action", 13),
        ('every\xa05m => run "x"', "bad_trigger", 1),
        ('every 5m => run "a\x00b"', "bad_character", 19),
        ('every 5m => run "a\nb"', "bad_character", 19),
        ('every 5m => run "a\ud800b"', "bad_character", 19),
        ('\ufeffevery 5m => run "x"', "bad_trigger", 1),
        (f'every 5m => run "{"x" * MAX_LINE_LENGTH}"', "long_line", MAX_LINE_LENGTH + 1),
    ],
)
def test_an_invalid_line_is_refused_with_its_position(text: str, code: str, column: int):
    """The line has number 7, so a byte order mark is not allowed."""
    error = refusal(text)
    assert (error.code, error.column) == (code, column)


def test_an_error_says_what_was_expected_and_where():
    error = refusal("[b] every 5x => summon forge   # soon")
    assert str(error) == (
        'line 7, column 11: "5x" is not a valid duration '
        "(expected a whole number and one of s, m, h, d, such as 30s, 5m, 1h or 2d)"
    )
    assert error.raw == "[b] every 5x => summon forge   # soon"


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("sumon tick", 'unknown action "sumon": did you mean "summon"?'),
        ("xyzzy tick", 'unknown action "xyzzy"'),
        ("", "there is no action after =>"),
    ],
)
def test_an_unknown_action_is_named_with_a_similar_one(written: str, problem: str):
    assert refusal(f"every 5m => {written}").problem == problem


def test_a_wrong_cron_field_is_named():
    error = refusal('[b] at 0 24 * * * => run "x"')
    assert error.problem.startswith('hour "24" must be 0-23')
    assert error.column == 10


def test_the_shown_part_of_an_invalid_line_has_no_control_characters():
    error = refusal("every \x1b[31m \x00" + "x" * 500)
    assert "\x1b" not in str(error) + error.raw
    assert "\x00" not in str(error) + error.raw
    assert len(error.raw) < 250
