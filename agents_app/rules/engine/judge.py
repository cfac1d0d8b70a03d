"""Whether a rule's conditions are true of one snapshot of the fleet, why, and what messages say."""

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

# In the reason, which people read: an action has all of them.
MOST_NAMED = 10
# An agent that does not exist is one that does nothing.
_NOBODY = AgentState()
_TEMPLATE = re.compile(r"\{(timestamp|crew|idle|idle_duration)\}")


class Judgement(NamedTuple):
    """`idle` are the agents that an idle condition found, when all is true."""

    true: bool
    because: str
    idle: tuple[str, ...] = ()
    longest_idle_seconds: float | None = None


_NO_CONDITION = Judgement(True, "it has no condition")


def judge(conditions: tuple[Condition, ...], snapshot: Snapshot) -> Judgement:
    """True when each of them is; the first that is not says why."""
    all_true = _NO_CONDITION
    for condition in conditions:
        one = judge_one(condition, snapshot)
        if not one.true:
            return one
        all_true = one if all_true is _NO_CONDITION else _both(all_true, one)
    return all_true


def _both(one: Judgement, other: Judgement) -> Judgement:
    found = one if one.idle else other
    because = f"{one.because}, and {other.because}"
    return Judgement(True, because, found.idle, found.longest_idle_seconds)


def judge_one(condition: Condition, snapshot: Snapshot) -> Judgement:
    if isinstance(condition, AliveCondition):
        return _alive(condition, snapshot)
    if isinstance(condition, IdleCondition):
        return _idle(condition, snapshot)
    agent = condition.agent
    state = snapshot.agents.get(agent, _NOBODY)
    if isinstance(condition, QueueCondition):
        because = f"{state.queued} waiting for {agent}"
        return Judgement(state.queued > condition.more_than, because)
    if isinstance(condition, BudgetCondition):
        return _spent(state.spent_percent, agent, condition.percent)
    failed = state.failed.get(condition.within_seconds, 0)
    runs = f"{failed} failed run{'' if failed == 1 else 's'} of {agent}"
    because = f"{runs} within {duration_text(condition.within_seconds)}"
    return Judgement(failed > condition.more_than, because)


def fill(template: str, snapshot: Snapshot, judgement: Judgement) -> str:
    """A message with its {templates} filled; braces that mean nothing stay as they are."""
    if "{" not in template:
        return template
    longest = judgement.longest_idle_seconds
    values = {
        "timestamp": snapshot.at.isoformat(timespec="seconds"),
        "crew": snapshot.crew,
        "idle": ",".join(judgement.idle) or None,
        "idle_duration": None if longest is None else span_text(longest),
    }
    return _TEMPLATE.sub(lambda found: values[found[1]] or found[0], template)


def _alive(condition: AliveCondition, snapshot: Snapshot) -> Judgement:
    missing = [name for name in condition.agents if name not in snapshot.idle]
    if missing:
        because = f"{' and '.join(missing)} {_is(missing)} not alive"
    else:
        because = f"{' and '.join(condition.agents)} {_is(condition.agents)} alive"
    return Judgement(bool(missing) == condition.negate, because)


def _is(names: list[str] | tuple[str, ...]) -> str:
    return "is" if len(names) == 1 else "are"


def _idle(condition: IdleCondition, snapshot: Snapshot) -> Judgement:
    """About all and any the same is found for every rule that asks for so many seconds."""
    if not isinstance(condition.target, str):
        return _found_idle(condition, snapshot)
    asked = (condition.target, condition.seconds)
    known: Judgement | None = snapshot.known.get(asked)
    if known is None:
        known = snapshot.known[asked] = _found_idle(condition, snapshot)
    return known


def _found_idle(condition: IdleCondition, snapshot: Snapshot) -> Judgement:
    """Nobody there is nobody idle: a rule about all does not nudge an empty crew."""
    alive, target = snapshot.idle, condition.target
    idle: Mapping[str, float]
    if not isinstance(target, str):
        idle = {name: alive[name] for name in target if alive.get(name, 0) > condition.seconds}
        enough, longest = len(idle) == len(target), max(idle.values(), default=0)
    elif not alive:
        return Judgement(False, "no agent is alive")
    else:
        idle = {name: alive[name] for name in alive if alive[name] > condition.seconds}
        enough = bool(idle) if target == "any" else len(idle) == len(alive)
        longest = max(alive.values())
    if not enough:
        return Judgement(False, _why_not_idle(condition, snapshot))
    named = [f"{name} for {span_text(idle[name])}" for name in islice(idle, MOST_NAMED)]
    more = [f"{len(idle) - MOST_NAMED} more"] if len(idle) > MOST_NAMED else []
    return Judgement(True, f"idle: {', '.join(named + more)}", tuple(idle), longest)


def _why_not_idle(condition: IdleCondition, snapshot: Snapshot) -> str:
    alive, target = snapshot.idle, condition.target
    needed = f"more than {duration_text(condition.seconds)} is asked for"
    if target == "any":
        name = max(alive, key=alive.__getitem__)
        return f"the longest idle is {name}, for {span_text(alive[name])}; {needed}"
    asked = alive if isinstance(target, str) else target
    name = next(name for name in asked if alive.get(name, 0) <= condition.seconds)
    if name not in alive:
        return f"{name} is not alive"
    return f"{name} has been idle for {span_text(alive[name])}; {needed}"


def _spent(spent: float | None, agent: str, percent: int) -> Judgement:
    if spent is None:
        return Judgement(False, f"{agent} has no budget")
    return Judgement(spent > percent, f"{agent} has used {spent:.0f}% of its budget")
