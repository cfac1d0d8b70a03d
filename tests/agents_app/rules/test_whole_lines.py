"""Lines as a whole: names, comments, arrows, and what an error says."""

import pytest

from agents_app.rules.language.line import LONGEST_LINE, LONGEST_NAME
from agents_app.rules.language.parse import parse_line
from tests.agents_app.rules.reading import parsed, refusal


@pytest.mark.parametrize("text", ["", " ", "\t", "\r", "# x", "  # x", "#", "\ufeff", "\ufeff# x"])
def test_a_line_that_says_nothing_is_no_rule(text: str):
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
        (f"[{'x' * LONGEST_NAME}]", "x" * LONGEST_NAME),
    ],
)
def test_a_name_is_whatever_stands_in_brackets(written: str, name: str):
    rule = parsed(f'{written} every 5m => run "x"')
    assert (rule.name, rule.auto_named) == (name, False)


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ('[  ] every 5m => run "x"', "bad_name", 2),
        ('[a[b]] every 5m => run "x"', "bad_name", 1),
        ('[a] [b] every 5m => run "x"', "bad_trigger", 5),
        (f'[{"x" * (LONGEST_NAME + 1)}] every 5m => run "x"', "bad_name", 2),
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
        (f'every 5m => run "{"x" * LONGEST_LINE}"', "long_line", LONGEST_LINE + 1),
    ],
)
def test_a_line_that_is_no_rule_is_refused_with_its_place(text: str, code: str, column: int):
    """It is line 7: a mark that opens a file has no business there."""
    error = refusal(text)
    assert (error.code, error.column) == (code, column)


def test_an_error_says_what_was_expected_and_where():
    error = refusal("[b] every 5x => summon forge   # soon")
    assert str(error) == (
        'line 7, column 11: "5x" is no duration '
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


def test_what_is_shown_of_a_bad_line_is_safe_anywhere():
    error = refusal("every \x1b[31m \x00" + "x" * 500)
    assert "\x1b" not in str(error) + error.raw
    assert "\x00" not in str(error) + error.raw
    assert len(error.raw) < 250
