"""Parses the text of a rules file; a line that is not a valid rule becomes an error."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256

from agents_app.rules.language.line_reader import (
    IDLE,
    MAX_NAME_LENGTH,
    NAME,
    RuleError,
    RuleLineReader,
)
from agents_app.rules.language.parse_action import message_of, read_action
from agents_app.rules.language.parse_condition import read_conditions
from agents_app.rules.language.parse_trigger import ARROW, arrow_without_blanks, read_trigger
from agents_app.rules.language.rule import (
    Action,
    Condition,
    IdleCondition,
    Pause,
    Release,
    Resume,
    Rule,
    SendMessage,
)
from agents_app.rules.language.text import action_text, body_text, trigger_text
from agents_app.triggers import excerpt

_END_OF_LINE = re.compile("\r\n|\r|\n")
_IDLE_TEMPLATES = re.compile(r"\{idle(?:_duration)?\}")
_NOT_IN_AUTO_NAME = re.compile(r"[^a-z0-9]+")
_MAX_STEM_LENGTH = 60
_DIGEST_DIGITS = 6


@dataclass(frozen=True, slots=True)
class RulesFile:
    """Rules in the order of the file, which is the order in which they are evaluated."""

    rules: tuple[Rule, ...] = ()
    errors: tuple[RuleError, ...] = ()


def parse_file(text: str) -> RulesFile:
    """Parse any text; an invalid line does not affect the other lines."""
    rules: list[Rule] = []
    errors: list[RuleError] = []
    taken: dict[str, int] = {}
    for number, written in enumerate(_END_OF_LINE.split(text), start=1):
        try:
            if rule := parse_line(written, number):
                _take_name(rule, taken, written)
                rules.append(rule)
        except RuleError as error:
            errors.append(error)
    return RulesFile(tuple(_with_unique_names(rules)), tuple(errors))


def parse_line(text: str, line: int = 1) -> Rule | None:
    """None for a blank line and for a comment."""
    reader = RuleLineReader(text, line)
    return _read_rule(reader) if reader.word else None


def parse_stored(text: str) -> Rule | None:
    """Parse what `rule_text` wrote, which may be longer than a line of the file may be.

    None if the version of Drover that stored the text had another grammar.
    """
    try:
        return _read_rule(RuleLineReader(text, 1, longest=None))
    except RuleError:
        return None


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """Parse what would follow `if` in a rule."""
    line = RuleLineReader(text, 1)
    conditions = read_conditions(line)
    line.expect_end("the condition")
    return conditions


def _read_rule(line: RuleLineReader) -> Rule:
    name = _read_name(line)
    trigger = read_trigger(line)
    conditions = read_conditions(line) if line.take_word("if") else ()
    _read_arrow(line, conditions)
    start = line.at
    action = read_action(line)
    _refuse_idle_template_without_condition(line, start, conditions, action)
    rule = Rule(name, trigger, conditions, action, line=line.number)
    return rule if name else replace(rule, name=auto_name(rule), auto_named=True)


def _read_name(line: RuleLineReader) -> str:
    if not line.word.startswith("["):
        return ""
    found = line.take(NAME)
    if found is None:
        raise line.error("bad_name", "the name is not closed", "[name] and then a trigger")
    name = found[1].strip()
    if not name or len(name) > MAX_NAME_LENGTH:
        problem = f"the name has {len(name)} characters" if name else "the name is empty"
        raise line.error("bad_name", problem, f"1 to {MAX_NAME_LENGTH} characters", found.start(1))
    return name


def _read_arrow(line: RuleLineReader, conditions: tuple[Condition, ...]) -> None:
    word = line.word
    if word == ARROW and line.follows_blank:
        line.at += len(ARROW)
        return
    if ARROW in word:
        raise arrow_without_blanks(line)
    more = "and" if conditions else "if"
    if not word:
        raise line.error("missing_arrow", "the line ends before =>", "=> and an action")
    problem = f'unexpected text "{excerpt(word)}"'
    raise line.error("missing_arrow", problem, f'"{more}" and a condition, or => and an action')


def _refuse_idle_template_without_condition(
    line: RuleLineReader, start: int, conditions: tuple[Condition, ...], action: Action
) -> None:
    if any(isinstance(one, IdleCondition) for one in conditions):
        return
    is_target = (
        isinstance(action, SendMessage | Release | Pause | Resume) and action.targets == IDLE
    )
    if is_target or _IDLE_TEMPLATES.search(message_of(action)):
        found = _IDLE_TEMPLATES.search(line.text, start)
        assert found is not None
        problem = f"{found[0]} needs an idle condition in the rule"
        expected = 'a condition such as "if idle(any) > 4h"'
        raise line.error("needs_idle", problem, expected, found.start())


# --- names ----------------------------------------------------------------------------------


def auto_name(rule: Rule) -> str:
    """A name for a rule without one: the same after every reload, on whichever line it stands.

    The beginning is readable; the digits at the end differ between rules that begin alike.
    """
    action = action_text(rule.action).partition('"')[0]
    words = _NOT_IN_AUTO_NAME.sub("-", f"{trigger_text(rule.trigger)} {action}".lower())
    digest = sha256(body_text(rule).encode()).hexdigest()[:_DIGEST_DIGITS]
    return f"{words[:_MAX_STEM_LENGTH].strip('-')}-{digest}"


def _take_name(rule: Rule, taken: dict[str, int], written: str) -> None:
    """The first line with a name keeps it; a later line with the same name is an error."""
    if rule.auto_named:
        return
    first = taken.setdefault(rule.name, rule.line)
    if first != rule.line:
        problem = f'the name "{excerpt(rule.name)}" is already used in line {first}'
        expected = "a different name for every rule"
        raise RuleLineReader(written, rule.line).error("duplicate_name", problem, expected)


def _with_unique_names(rules: list[Rule]) -> list[Rule]:
    """Automatic names are numbered where they collide; written names are kept."""
    names = UniqueNames(rule.name for rule in rules if not rule.auto_named)
    return [replace(one, name=names.add(one.name)) if one.auto_named else one for one in rules]


class UniqueNames:
    """Numbers repeated names in their order: `...`, `...-2`, `...-3`."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._last: dict[str, int] = {}

    def add(self, name: str) -> str:
        unique = name
        while unique in self._taken:
            number = self._last[name] = self._last.get(name, 1) + 1
            unique = f"{name}-{number}"
        self._taken.add(unique)
        assert len(unique) <= MAX_NAME_LENGTH
        return unique
