"""The middle of a rule: what must be true of the fleet; `and` joins one condition to the next."""

import re
from collections.abc import Callable
from typing import Literal, cast

from agents_app.rules.language.errors import RuleError
from agents_app.rules.language.line import RuleLineText
from agents_app.rules.language.rule import (
    AliveCondition,
    BudgetCondition,
    Condition,
    Failed,
    IdleCondition,
    QueueCondition,
)
from agents_app.rules.language.targets import A_NAME, read_agent, read_names
from agents_app.rules.language.when import A_DURATION, ARROW, read_duration
from agents_app.triggers import excerpt

MOST = 1_000_000_000
_EXPECTED = (
    "alive(agent), not alive(agent), idle(agent) > 10m, queue(agent) > 5, "
    "failed(agent) > 2 in 1h or budget(agent) > 80%"
)
_EVERYBODY = ("all", "any")
_PREDICATE = re.compile(r"([a-z_]+)[ \t]*\(")
_NUMBER = re.compile(r"[0-9]+(?![^ \t%])")


def read_conditions(line: RuleLineText) -> tuple[Condition, ...]:
    """What follows `if`, up to the arrow."""
    conditions = [_read_condition(line)]
    while line.take_word("and"):
        start = line.at
        conditions.append(_read_condition(line))
        _refuse_another_of_its_kind(line, conditions, start)
    return tuple(conditions)


def _read_condition(line: RuleLineText) -> Condition:
    line.skip_blanks()
    start, word = line.at, line.word
    negate = line.take_word("not")
    found = line.take(_PREDICATE)
    read = _PREDICATES.get(found[1]) if found else None
    if found is None or read is None:
        here = "the condition is missing" if word in ("", ARROW) else f'"{excerpt(word)}" is none'
        raise line.error("bad_condition", here, _EXPECTED, start)
    if not negate:
        return read(line)
    if found[1] != "alive":
        raise line.error("bad_condition", f'"not" cannot stand before {found[1]}', _EXPECTED, start)
    return AliveCondition(_listed(line), negate=True)


def _refuse_another_of_its_kind(
    line: RuleLineText, conditions: list[Condition], start: int
) -> None:
    """One way to say a thing, and one meaning of {idle}."""
    *before, last = conditions
    if isinstance(last, IdleCondition) and any(isinstance(one, IdleCondition) for one in before):
        raise line.error(
            "two_idles", "a second idle leaves open who {idle} is", "one idle a rule", start
        )
    if isinstance(last, AliveCondition) and not last.negate:
        for one in before:
            if isinstance(one, AliveCondition) and not one.negate:
                both = ",".join(dict.fromkeys(one.agents + last.agents))
                problem = "alive asks for several agents at once"
                raise line.error("two_alives", problem, f"alive({both})", start)


# --- one of each ----------------------------------------------------------------------------


def _alive(line: RuleLineText) -> Condition:
    return AliveCondition(_listed(line))


def _idle(line: RuleLineText) -> Condition:
    target: Literal["all", "any"] | tuple[str, ...]
    line.skip_blanks()
    start = line.at
    names = read_names(line, but=_EVERYBODY)
    _close(line)
    target = names
    if set(names) & set(_EVERYBODY):
        if len(names) > 1:
            problem = '"all" and "any" stand for others, and alone'
            raise line.error("bad_target", problem, "all, any, or names of agents", start)
        target = cast(Literal["all", "any"], names[0])
    _more_than(line, "idle(...) > 10m")
    return IdleCondition(target, read_duration(line))


def _queue(line: RuleLineText) -> Condition:
    agent = _one(line)
    _more_than(line, "queue(agent) > 5")
    return QueueCondition(agent, _number(line))


def _failed(line: RuleLineText) -> Condition:
    agent = _one(line)
    _more_than(line, "failed(agent) > 2 in 1h")
    number = _number(line)
    if not line.take_word("in"):
        raise line.error("bad_condition", "no window is named", f'"in" and {A_DURATION}')
    return Failed(agent, number, read_duration(line))


def _budget(line: RuleLineText) -> Condition:
    agent = _one(line)
    _more_than(line, "budget(agent) > 80%")
    percent = _number(line)
    if not line.take(re.compile(r"%(?![^ \t])")):
        raise line.error("bad_condition", "no percent sign follows", "budget(agent) > 80%")
    return BudgetCondition(agent, percent)


_PREDICATES: dict[str, Callable[[RuleLineText], Condition]] = {
    "alive": _alive,
    "idle": _idle,
    "queue": _queue,
    "failed": _failed,
    "budget": _budget,
}


# --- what they are made of ------------------------------------------------------------------


def _listed(line: RuleLineText) -> tuple[str, ...]:
    names = read_names(line)
    _close(line)
    return names


def _one(line: RuleLineText) -> str:
    agent = read_agent(line)
    _close(line)
    return agent


def _close(line: RuleLineText) -> None:
    if not line.take(re.compile(r"\)")):
        raise _here(line, "the parenthesis is not closed", f"a comma and {A_NAME}, or )")


def _more_than(line: RuleLineText, example: str) -> None:
    if not line.take(re.compile(">(?![=>])")):
        raise _here(line, "how much is not said", f'">", as in {example}')


def _number(line: RuleLineText) -> int:
    found = line.take(_NUMBER)
    if found is None:
        raise _here(line, "there is no number", "a whole number such as 5")
    if len(found[0]) > len(str(MOST)) or int(found[0]) > MOST:
        raise line.error("bad_number", "the number is too big", f"at most {MOST}", found.start())
    return int(found[0])


def _here(line: RuleLineText, problem: str, expected: str) -> RuleError:
    word = line.word
    where = f' before "{excerpt(word)}"' if word else ""
    return line.error("bad_condition", problem + where, expected)
