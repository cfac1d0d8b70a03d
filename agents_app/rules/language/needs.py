"""Which agents a rule is about, and what a set of rules asks to be looked up; pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from agents_app.rules.language.rule import (
    Action,
    AliveCondition,
    BudgetCondition,
    Condition,
    Failed,
    IdleCondition,
    QueueCondition,
    Rule,
    Scale,
    Shell,
    Summon,
    Tell,
)


@dataclass(frozen=True, slots=True)
class Needs:
    """What nobody asks for is not looked up."""

    idle: bool
    queued: bool
    failed_within: tuple[int, ...]
    spent: frozenset[str]


def needs_of(rules: Iterable[Rule]) -> Needs:
    asked = [condition for rule in rules for condition in rule.conditions]
    return Needs(
        idle=any(isinstance(one, IdleCondition) for one in asked),
        queued=any(isinstance(one, QueueCondition) for one in asked),
        failed_within=tuple(sorted({c.within_seconds for c in asked if isinstance(c, Failed)})),
        spent=frozenset(one.agent for one in asked if isinstance(one, BudgetCondition)),
    )


def concerned(rule: Rule) -> tuple[str, ...]:
    """Agents that it names, once, in its order; `all` and `any` name nobody, because somebody
    always changes."""
    names = [name for one in rule.conditions for name in _of_condition(one)]
    return tuple(dict.fromkeys((*names, *_of_action(rule.action))))


def started_by(action: Action) -> tuple[str, ...]:
    """Agents that it brings to life: a message to one that is not alive becomes work."""
    return _of_action(action) if isinstance(action, Summon | Tell) else ()


def _of_condition(condition: Condition) -> tuple[str, ...]:
    match condition:
        case AliveCondition(agents, _):
            return agents
        case IdleCondition(target, _):
            return () if isinstance(target, str) else target
        case QueueCondition() | Failed() | BudgetCondition():
            return (condition.agent,)


def _of_action(action: Action) -> tuple[str, ...]:
    match action:
        case Summon(agent, _) | Scale(agent, _):
            return (agent,)
        case Shell():
            return ()
    return () if isinstance(action.targets, str) else action.targets
