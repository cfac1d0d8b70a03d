"""A printed rule parses to the same rule; any other text parses, or is refused with a position."""

from hypothesis import given
from hypothesis import strategies as st

from agents_app.rules.language.line_reader import RuleError
from agents_app.rules.language.parse import parse_file, parse_line
from agents_app.rules.language.rule import Rule
from agents_app.rules.language.text import rule_text, span_text
from tests.agents_app.rules.language.strategies import rules

# Parts of valid lines, so that more of the generated lines are nearly rules.
WORDS = """every at if not and alive( idle( queue( ) , > => msg summon run scale " \\ # [a] [ ] 5m
0s 0 * */5 14:30 Sun @daily forge all any {idle} % in"""
PIECES = st.sampled_from([*WORDS.split(), " ", "\t", "\r", "\ufeff", "\x00", "\ud800", "ü"])
NEARLY = st.lists(PIECES, max_size=14).map(" ".join) | st.lists(PIECES, max_size=14).map("".join)


@given(rules())
def test_a_printed_rule_parses_to_the_same_rule(rule: Rule):
    assert parse_line(rule_text(rule)) == rule


@given(st.text() | NEARLY, st.integers(1, 999))
def test_any_line_is_a_rule_or_blank_or_an_error_with_its_position(text: str, number: int):
    try:
        rule = parse_line(text, number)
    except RuleError as error:
        assert error.line == number
        assert 1 <= error.column <= len(text) + 1
        assert error.problem and error.expected and error.code
        (str(error) + error.raw).encode()
        return
    if rule is not None:
        again = parse_line(rule_text(rule))
        assert again == rule


@given(st.lists(NEARLY | rules().map(rule_text), max_size=8).map("\n".join) | st.text())
def test_any_file_is_rules_and_errors(text: str):
    file = parse_file(text)
    names = [rule.name for rule in file.rules]
    assert len(names) == len(set(names))
    lines = [one.line for one in file.rules] + [one.line for one in file.errors]
    assert len(lines) == len(set(lines))


def test_measured_times_have_two_units_at_most():
    said = [span_text(seconds) for seconds in (0, 0.9, 59, 60, 700, 3600, 15_130, 200_000)]
    assert said == ["0s", "0s", "59s", "1m", "11m 40s", "1h", "4h 12m", "2d 7h"]
