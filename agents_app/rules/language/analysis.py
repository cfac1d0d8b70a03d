"""What follows from the text of rules: agents they name, data they need, and warnings; pure."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from agents_app.rules.language.rule import (
    Action,
    AliveCondition,
    BudgetCondition,
    Condition,
    Every,
    FailedCondition,
    IdleCondition,
    QueueCondition,
    Rule,
    Scale,
    SendMessage,
    ShellCommand,
    Summon,
)

TICK_SECONDS = 10
_KEYWORDS = {"all", "any"}


@dataclass(frozen=True, slots=True)
class RequiredData:
    """Which data a snapshot must read; data that no rule needs is not read."""

    idle: bool
    queued: bool
    failed_within: tuple[int, ...]
    spent: frozenset[str]


def required_data(rules: Iterable[Rule]) -> RequiredData:
    conditions = [condition for rule in rules for condition in rule.conditions]
    windows = {c.within_seconds for c in conditions if isinstance(c, FailedCondition)}
    return RequiredData(
        idle=any(isinstance(one, IdleCondition) for one in conditions),
        queued=any(isinstance(one, QueueCondition) for one in conditions),
        failed_within=tuple(sorted(windows)),
        spent=frozenset(one.agent for one in conditions if isinstance(one, BudgetCondition)),
    )


def named_agents(rule: Rule) -> tuple[str, ...]:
    """The agents that a rule names, once each, in its order; `all` and `any` name no agent."""
    names = [name for one in rule.conditions for name in _agents_of_condition(one)]
    return tuple(dict.fromkeys((*names, *_agents_of_action(rule.action))))


def started_agents(action: Action) -> tuple[str, ...]:
    """The agents that an action starts: a message to an agent without a run becomes work."""
    return _agents_of_action(action) if isinstance(action, Summon | SendMessage) else ()


def rule_warnings(rule: Rule, known: Collection[str]) -> list[str]:
    """What the author of a valid rule may not have intended; `known` are the existing agents."""
    return [*_too_frequent(rule), *_unknown_agents(rule, known)]


def _agents_of_condition(condition: Condition) -> tuple[str, ...]:
    match condition:
        case AliveCondition(agents, _):
            return agents
        case IdleCondition(target, _):
            return () if isinstance(target, str) else target
        case QueueCondition() | FailedCondition() | BudgetCondition():
            return (condition.agent,)


def _agents_of_action(action: Action) -> tuple[str, ...]:
    match action:
        case Summon(agent, _) | Scale(agent, _):
            return (agent,)
        case ShellCommand():
            return ()
    return () if isinstance(action.targets, str) else action.targets


def _too_frequent(rule: Rule) -> Iterator[str]:
    if isinstance(rule.trigger, Every) and rule.trigger.seconds < TICK_SECONDS:
        yield f"rules are evaluated every {TICK_SECONDS} s: the rule cannot fire more often"


def _unknown_agents(rule: Rule, known: Collection[str]) -> Iterator[str]:
    for name in named_agents(rule):
        if name in known:
            continue
        if name in _KEYWORDS:
            yield f'"{name}" means an agent of that name here, and there is no such agent'
        else:
            yield f"there is no agent {name}"
