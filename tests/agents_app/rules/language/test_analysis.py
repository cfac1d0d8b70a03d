"""Warnings about rules that are valid but may not be intended, and the data that rules need."""

import pytest

from agents_app.rules.language.analysis import rule_warnings
from agents_app.rules.language.parse import parse_line


def warnings(text: str) -> list[str]:
    rule = parse_line(text)
    assert rule is not None
    return rule_warnings(rule, {"forge", "beacon"})


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ('every 1m if alive(all) => run "x"', '"all" means an agent of that name here'),
        ("every 1m => summon all", '"all" means an agent of that name here'),
        ("every 1m if idle(ghost) > 1m => release forge", "there is no agent ghost"),
        ("every 1m => scale ghost 2", "there is no agent ghost"),
        ("every 1m => pause forge,ghost", "there is no agent ghost"),
        ("every 9s => summon forge", "every 10 s"),
    ],
)
def test_a_doubtful_rule_has_a_warning(text: str, warning: str):
    (found,) = warnings(text)
    assert warning in found


@pytest.mark.parametrize(
    "text",
    [
        'every 10s if idle(any) > 1m => msg all "x"',
        'at 0 0 * * * => run "x"',
        "every 1m if not alive(forge) => summon forge",
    ],
)
def test_a_plain_rule_has_no_warning(text: str):
    assert warnings(text) == []
