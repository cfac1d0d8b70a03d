"""Reads the middle part of a rule: conditions about the fleet, joined by `and`."""

import re
from collections.abc import Callable
from typing import Literal, cast

from agents_app.rules.language.line_reader import (
    AGENT_NAME,
    RuleError,
    RuleLineReader,
    read_agent,
    read_names,
    unknown_word,
)
from agents_app.rules.language.parse_trigger import A_DURATION, ARROW, read_duration
from agents_app.rules.language.rule import (
    AliveCondition,
    BudgetCondition,
    Condition,
    FailedCondition,
    IdleCondition,
    QueueCondition,
)
from agents_app.triggers import excerpt

MAX_COUNT = 1_000_000_000
_EXPECTED = (
    "alive(agent), not alive(agent), idle(agent) > 10m, queue(agent) > 5, "
    "failed(agent) > 2 in 1h or budget(agent) > 80%"
)
_IDLE_KEYWORDS = ("all", "any")
_PREDICATE = re.compile(r"([a-z_]+)[ \t]*\(")
_NUMBER = re.compile(r"[0-9]+(?![^ \t%])")
_LETTERS = re.compile(r"[A-Za-z_]+")


def read_conditions(line: RuleLineReader) -> tuple[Condition, ...]:
    """Read what follows `if`, up to the arrow."""
    conditions = [_read_condition(line)]
    while line.take_word("and"):
        start = line.at
        conditions.append(_read_condition(line))
        _refuse_repeated_condition(line, conditions, start)
    return tuple(conditions)


def _read_condition(line: RuleLineReader) -> Condition:
    line.skip_blanks()
    start, word = line.at, line.word
    negate = line.take_word("not")
    found = line.take(_PREDICATE)
    read = _PREDICATES.get(found[1]) if found else None
    if found is None or read is None:
        problem = _not_a_condition(word if not negate else line.text[start:])
        raise line.error("bad_condition", problem, _EXPECTED, start)
    if not negate:
        return read(line)
    if found[1] != "alive":
        problem = f'"not" cannot be used with {found[1]}, only with alive'
        raise line.error("bad_condition", problem, _EXPECTED, start)
    return AliveCondition(_agents(line), negate=True)


def _not_a_condition(text: str) -> str:
    if text in ("", ARROW):
        return "the condition is missing"
    letters = _LETTERS.match(text)
    name = letters[0] if letters else text
    if name in _PREDICATES:
        return f"{name} needs an agent in parentheses"
    return unknown_word("condition", name, _PREDICATES)


def _refuse_repeated_condition(
    line: RuleLineReader, conditions: list[Condition], start: int
) -> None:
    """A second idle would make {idle} ambiguous; a second alive has a shorter spelling."""
    *before, last = conditions
    if isinstance(last, IdleCondition) and any(isinstance(one, IdleCondition) for one in before):
        problem = "a rule can have only one idle condition, because {idle} names its agents"
        raise line.error("two_idles", problem, "one idle condition", start)
    if isinstance(last, AliveCondition) and not last.negate:
        for one in before:
            if isinstance(one, AliveCondition) and not one.negate:
                both = ",".join(dict.fromkeys(one.agents + last.agents))
                problem = "several agents belong in one alive condition"
                raise line.error("two_alives", problem, f"alive({both})", start)


# --- one reader per predicate ---------------------------------------------------------------


def _alive(line: RuleLineReader) -> Condition:
    return AliveCondition(_agents(line))


def _idle(line: RuleLineReader) -> Condition:
    target: Literal["all", "any"] | tuple[str, ...]
    line.skip_blanks()
    start = line.at
    names = read_names(line, keywords=_IDLE_KEYWORDS)
    _close_parenthesis(line)
    target = names
    if set(names) & set(_IDLE_KEYWORDS):
        if len(names) > 1:
            problem = '"all" and "any" cannot be combined with other agents'
            raise line.error("bad_target", problem, "all, any, or names of agents", start)
        target = cast(Literal["all", "any"], names[0])
    _more_than(line, "idle(...) > 10m")
    return IdleCondition(target, read_duration(line))


def _queue(line: RuleLineReader) -> Condition:
    agent = _one_agent(line)
    _more_than(line, "queue(agent) > 5")
    return QueueCondition(agent, _number(line))


def _failed(line: RuleLineReader) -> Condition:
    agent = _one_agent(line)
    _more_than(line, "failed(agent) > 2 in 1h")
    number = _number(line)
    if not line.take_word("in"):
        problem = "the time window is missing"
        raise line.error("bad_condition", problem, f'"in" and {A_DURATION}')
    return FailedCondition(agent, number, read_duration(line))


def _budget(line: RuleLineReader) -> Condition:
    agent = _one_agent(line)
    _more_than(line, "budget(agent) > 80%")
    percent = _number(line)
    if not line.take(re.compile(r"%(?![^ \t])")):
        problem = "the percent sign is missing"
        raise line.error("bad_condition", problem, "budget(agent) > 80%")
    return BudgetCondition(agent, percent)


_PREDICATES: dict[str, Callable[[RuleLineReader], Condition]] = {
    "alive": _alive,
    "idle": _idle,
    "queue": _queue,
    "failed": _failed,
    "budget": _budget,
}


# --- parts of a predicate -------------------------------------------------------------------


def _agents(line: RuleLineReader) -> tuple[str, ...]:
    names = read_names(line)
    _close_parenthesis(line)
    return names


def _one_agent(line: RuleLineReader) -> str:
    agent = read_agent(line)
    _close_parenthesis(line)
    return agent


def _close_parenthesis(line: RuleLineReader) -> None:
    if not line.take(re.compile(r"\)")):
        problem = "the parenthesis is not closed"
        raise _error_before_word(line, problem, f"a comma and {AGENT_NAME}, or )")


def _more_than(line: RuleLineReader, example: str) -> None:
    if not line.take(re.compile(">(?![=>])")):
        raise _error_before_word(line, "the comparison is missing", f'">", as in {example}')


def _number(line: RuleLineReader) -> int:
    found = line.take(_NUMBER)
    if found is None:
        raise _error_before_word(line, "the number is missing", "a whole number such as 5")
    if len(found[0]) > len(str(MAX_COUNT)) or int(found[0]) > MAX_COUNT:
        problem = "the number is too big"
        raise line.error("bad_number", problem, f"at most {MAX_COUNT}", found.start())
    return int(found[0])


def _error_before_word(line: RuleLineReader, problem: str, expected: str) -> RuleError:
    word = line.word
    where = f' before "{excerpt(word)}"' if word else ""
    return line.error("bad_condition", problem + where, expected)
