"""What a rule says that its writer may not mean; it is obeyed all the same."""

from collections.abc import Collection, Iterator

from agents_app.rules.language.needs import concerned
from agents_app.rules.language.rule import Every, Rule

TICK_SECONDS = 10
_KEYWORDS = {"all", "any"}


def warnings(rule: Rule, known: Collection[str]) -> list[str]:
    """`known` are the names of the agents that exist."""
    return [*_too_often(rule), *_unknown_agents(rule, known)]


def _too_often(rule: Rule) -> Iterator[str]:
    if isinstance(rule.trigger, Every) and rule.trigger.seconds < TICK_SECONDS:
        yield f"rules are looked at every {TICK_SECONDS} s: it fires no more often than that"


def _unknown_agents(rule: Rule, known: Collection[str]) -> Iterator[str]:
    for name in concerned(rule):
        if name in known:
            continue
        if name in _KEYWORDS:
            yield f'"{name}" is an agent of that name here, and there is none'
        else:
            yield f"there is no agent {name}"
