"""One line, as a rule or as the error that it is."""

import pytest

from agents_app.rules.language.errors import RuleError
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
