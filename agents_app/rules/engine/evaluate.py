"""Evaluates conditions against a snapshot of the fleet, and fills in templates of messages."""

import re
from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from agents_app.rules.language import (
    AgentState,
    AliveCondition,
    BudgetCondition,
    Condition,
    IdleCondition,
    QueueCondition,
    Snapshot,
    duration_text,
    span_text,
)

# The reason is for people; the action gets the names of all agents.
MAX_NAMES_IN_REASON = 10
# An agent that does not exist counts as one without runs, queue and budget.
_NO_AGENT = AgentState()
_TEMPLATE = re.compile(r"\{(timestamp|crew|idle|idle_duration)\}")


class ConditionResult(NamedTuple):
    """Whether conditions hold and why; `idle` are the agents that an idle condition found."""

    holds: bool
    reason: str
    idle: tuple[str, ...] = ()
    longest_idle_seconds: float | None = None


_NO_CONDITION = ConditionResult(True, "the rule has no condition")


def evaluate_conditions(conditions: tuple[Condition, ...], snapshot: Snapshot) -> ConditionResult:
    """Holds when every condition holds; the reason is that of the first that does not."""
    all_true = _NO_CONDITION
    for condition in conditions:
        one = _evaluate_condition(condition, snapshot)
        if not one.holds:
            return one
        all_true = one if all_true is _NO_CONDITION else _both(all_true, one)
    return all_true


def _both(one: ConditionResult, other: ConditionResult) -> ConditionResult:
    found = one if one.idle else other
    reason = f"{one.reason}, and {other.reason}"
    return ConditionResult(True, reason, found.idle, found.longest_idle_seconds)


def _evaluate_condition(condition: Condition, snapshot: Snapshot) -> ConditionResult:
    if isinstance(condition, AliveCondition):
        return _alive(condition, snapshot)
    if isinstance(condition, IdleCondition):
        return _idle(condition, snapshot)
    agent = condition.agent
    state = snapshot.agents.get(agent, _NO_AGENT)
    if isinstance(condition, QueueCondition):
        reason = f"{state.queued} queued for {agent}"
        return ConditionResult(state.queued > condition.more_than, reason)
    if isinstance(condition, BudgetCondition):
        return _spent(state.spent_percent, agent, condition.percent)
    failed = state.failed.get(condition.within_seconds, 0)
    runs = f"{failed} failed run{'' if failed == 1 else 's'} of {agent}"
    reason = f"{runs} within {duration_text(condition.within_seconds)}"
    return ConditionResult(failed > condition.more_than, reason)


def fill_template(template: str, snapshot: Snapshot, result: ConditionResult) -> str:
    """A message with its {templates} replaced; unknown names in braces stay as they are."""
    if "{" not in template:
        return template
    longest = result.longest_idle_seconds
    values = {
        "timestamp": snapshot.at.isoformat(timespec="seconds"),
        "crew": snapshot.crew,
        "idle": ",".join(result.idle) or None,
        "idle_duration": None if longest is None else span_text(longest),
    }
    return _TEMPLATE.sub(lambda found: values[found[1]] or found[0], template)


def _alive(condition: AliveCondition, snapshot: Snapshot) -> ConditionResult:
    missing = [name for name in condition.agents if name not in snapshot.idle]
    if missing:
        reason = f"{' and '.join(missing)} {_is(missing)} not alive"
    else:
        reason = f"{' and '.join(condition.agents)} {_is(condition.agents)} alive"
    return ConditionResult(bool(missing) == condition.negate, reason)


def _is(names: list[str] | tuple[str, ...]) -> str:
    return "is" if len(names) == 1 else "are"


def _idle(condition: IdleCondition, snapshot: Snapshot) -> ConditionResult:
    """Results for `all` and `any` are cached, because many rules have the same target and time."""
    if not isinstance(condition.target, str):
        return _evaluate_idle(condition, snapshot)
    key = (condition.target, condition.seconds)
    cached: ConditionResult | None = snapshot.idle_results.get(key)
    if cached is None:
        cached = snapshot.idle_results[key] = _evaluate_idle(condition, snapshot)
    return cached


def _evaluate_idle(condition: IdleCondition, snapshot: Snapshot) -> ConditionResult:
    """Without a live agent, `all` and `any` do not hold."""
    alive, target = snapshot.idle, condition.target
    idle: Mapping[str, float]
    if not isinstance(target, str):
        idle = {name: alive[name] for name in target if alive.get(name, 0) > condition.seconds}
        enough, longest = len(idle) == len(target), max(idle.values(), default=0)
    elif not alive:
        return ConditionResult(False, "no agent is alive")
    else:
        idle = {name: alive[name] for name in alive if alive[name] > condition.seconds}
        enough = bool(idle) if target == "any" else len(idle) == len(alive)
        longest = max(alive.values())
    if not enough:
        return ConditionResult(False, _why_not_idle(condition, snapshot))
    named = [f"{name} for {span_text(idle[name])}" for name in islice(idle, MAX_NAMES_IN_REASON)]
    more = [f"{len(idle) - MAX_NAMES_IN_REASON} more"] if len(idle) > MAX_NAMES_IN_REASON else []
    return ConditionResult(True, f"idle: {', '.join(named + more)}", tuple(idle), longest)


def _why_not_idle(condition: IdleCondition, snapshot: Snapshot) -> str:
    alive, target = snapshot.idle, condition.target
    needed = f"the rule asks for more than {duration_text(condition.seconds)}"
    if target == "any":
        name = max(alive, key=alive.__getitem__)
        return f"the longest idle is {name}, for {span_text(alive[name])}; {needed}"
    names = alive if isinstance(target, str) else target
    name = next(name for name in names if alive.get(name, 0) <= condition.seconds)
    if name not in alive:
        return f"{name} is not alive"
    return f"{name} has been idle for {span_text(alive[name])}; {needed}"


def _spent(spent: float | None, agent: str, percent: int) -> ConditionResult:
    if spent is None:
        return ConditionResult(False, f"{agent} has no budget")
    return ConditionResult(spent > percent, f"{agent} has used {spent:.0f}% of its budget")
