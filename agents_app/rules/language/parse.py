"""Text of a rules file to rules; a line that is none is an error with its place, and no more."""

import re
from dataclasses import dataclass, replace

from agents_app.rules.language.action import message_of, read_action
from agents_app.rules.language.condition import read_conditions
from agents_app.rules.language.errors import RuleError
from agents_app.rules.language.line import LONGEST_NAME, NAME, RuleLineText
from agents_app.rules.language.names import NameGiver, auto_name
from agents_app.rules.language.rule import (
    Action,
    Condition,
    IdleCondition,
    Pause,
    Release,
    Resume,
    Rule,
    Tell,
)
from agents_app.rules.language.targets import IDLE
from agents_app.rules.language.when import ARROW, arrow_without_blanks, read_trigger
from agents_app.triggers import excerpt

_END_OF_LINE = re.compile("\r\n|\r|\n")
_IDLE_WORDS = re.compile(r"\{idle(?:_duration)?\}")


@dataclass(frozen=True, slots=True)
class RulesFile:
    """In the order of the file, which is the order in which rules are judged."""

    rules: tuple[Rule, ...] = ()
    errors: tuple[RuleError, ...] = ()


def parse_file(text: str) -> RulesFile:
    """Whatever the text is: lines that are no rules leave the others as they are."""
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
    return RulesFile(tuple(_told_apart(rules)), tuple(errors))


def parse_line(text: str, line: int = 1) -> Rule | None:
    """None for a line that says nothing: a blank one or a comment."""
    reading = RuleLineText(text, line)
    return _read_rule(reading) if reading.word else None


def parse_stored(text: str) -> Rule | None:
    """What `rule_text` wrote, which may be longer than what people did; None if this version of
    Drover has another grammar than the one that stored it."""
    try:
        return _read_rule(RuleLineText(text, 1, longest=None))
    except RuleError:
        return None


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """What would stand behind `if`, alone."""
    line = RuleLineText(text, 1)
    conditions = read_conditions(line)
    line.expect_end("the condition")
    return conditions


def _read_rule(reading: RuleLineText) -> Rule:
    name = _read_name(reading)
    trigger = read_trigger(reading)
    conditions = read_conditions(reading) if reading.take_word("if") else ()
    _read_arrow(reading, conditions)
    start = reading.at
    action = read_action(reading)
    _refuse_idle_words_without_idle(reading, start, conditions, action)
    rule = Rule(name, trigger, conditions, action, line=reading.number)
    return rule if name else replace(rule, name=auto_name(rule), auto_named=True)


def _read_name(line: RuleLineText) -> str:
    if not line.word.startswith("["):
        return ""
    found = line.take(NAME)
    if found is None:
        raise line.error("bad_name", "the name is not closed", "[name] and then a trigger")
    name = found[1].strip()
    if not name or len(name) > LONGEST_NAME:
        problem = "the name is too long" if name else "the name is empty"
        raise line.error("bad_name", problem, f"1 to {LONGEST_NAME} characters", found.start(1))
    return name


def _read_arrow(line: RuleLineText, conditions: tuple[Condition, ...]) -> None:
    word = line.word
    if word == ARROW and line.is_apart:
        line.at += len(ARROW)
        return
    if ARROW in word:
        raise arrow_without_blanks(line)
    more = "and" if conditions else "if"
    if not word:
        raise line.error("missing_arrow", "the line ends before =>", "=> and an action")
    problem = f'"{excerpt(word)}" cannot stand here'
    raise line.error("missing_arrow", problem, f'"{more}" and a condition, or => and an action')


def _refuse_idle_words_without_idle(
    line: RuleLineText, start: int, conditions: tuple[Condition, ...], action: Action
) -> None:
    if any(isinstance(one, IdleCondition) for one in conditions):
        return
    aims = isinstance(action, Tell | Release | Pause | Resume) and action.targets == IDLE
    if aims or _IDLE_WORDS.search(message_of(action)):
        found = _IDLE_WORDS.search(line.text, start)
        assert found is not None
        problem = f"{found[0]} says nothing without an idle condition"
        expected = 'a condition such as "if idle(any) > 4h"'
        raise line.error("needs_idle", problem, expected, found.start())


def _take_name(rule: Rule, taken: dict[str, int], written: str) -> None:
    """The first line of a name has it."""
    if rule.auto_named:
        return
    first = taken.setdefault(rule.name, rule.line)
    if first != rule.line:
        problem = f'the name "{excerpt(rule.name)}" is taken by line {first}'
        expected = "a name of its own for every rule"
        raise RuleLineText(written, rule.line).error("duplicate_name", problem, expected)


def _told_apart(rules: list[Rule]) -> list[Rule]:
    """Names that nobody wrote give way to those that somebody did."""
    giver = NameGiver(rule.name for rule in rules if not rule.auto_named)
    return [replace(one, name=giver.give(one.name)) if one.auto_named else one for one in rules]
