"""Parses one line that must be a rule, or one that must be an error."""

import pytest

from agents_app.rules.language.line_reader import RuleError
from agents_app.rules.language.parse import parse_line
from agents_app.rules.language.rule import Rule


def parsed(text: str) -> Rule:
    rule = parse_line(text)
    assert rule is not None
    return rule


def refusal(text: str) -> RuleError:
    with pytest.raises(RuleError) as caught:
        parse_line(text, 7)
    assert caught.value.line == 7
    return caught.value
