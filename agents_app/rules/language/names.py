"""Names for rules that were given none: the same after every reload, wherever the line stands."""

import re
from collections.abc import Iterable
from hashlib import sha256

from agents_app.rules.language.line import LONGEST_NAME
from agents_app.rules.language.rule import Rule
from agents_app.rules.language.text import action_text, body_text, trigger_text

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")
_LONGEST_STEM = 60
_DIGITS = 6


def auto_name(rule: Rule) -> str:
    """Its beginning is for people; the digits at its end tell rules apart that begin alike."""
    action = action_text(rule.action).partition('"')[0]
    words = _NOT_IN_A_NAME.sub("-", f"{trigger_text(rule.trigger)} {action}".lower())
    digest = sha256(body_text(rule).encode()).hexdigest()[:_DIGITS]
    return f"{words[:_LONGEST_STEM].strip('-')}-{digest}"


class NameGiver:
    """Rules that say the same are numbered in their order: `...`, `...-2`, `...-3`."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._last: dict[str, int] = {}

    def give(self, name: str) -> str:
        given = name
        while given in self._taken:
            number = self._last[name] = self._last.get(name, 1) + 1
            given = f"{name}-{number}"
        self._taken.add(given)
        assert len(given) <= LONGEST_NAME
        return given
