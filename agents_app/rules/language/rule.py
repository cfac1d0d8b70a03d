"""A rule as it was written, and the state of the fleet that it is judged by; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

# Before its name: who asked, in all that rules ask for.
BY_RULE = "rule "

# --- when -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Every:
    seconds: int


@dataclass(frozen=True, slots=True)
class At:
    """Five cron fields, in the zone of the project."""

    expression: str


Trigger = Every | At


# --- if -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AliveCondition:
    """Each of the agents has an unfinished run; negated: at least one of them has none."""

    agents: tuple[str, ...]
    negate: bool = False


@dataclass(frozen=True, slots=True)
class IdleCondition:
    target: Literal["all", "any"] | tuple[str, ...]
    seconds: int


@dataclass(frozen=True, slots=True)
class QueueCondition:
    agent: str
    more_than: int


@dataclass(frozen=True, slots=True)
class Failed:
    agent: str
    more_than: int
    within_seconds: int


@dataclass(frozen=True, slots=True)
class BudgetCondition:
    """More than so many percent of the tightest budget that counts for the agent."""

    agent: str
    percent: int


Condition = AliveCondition | IdleCondition | QueueCondition | Failed | BudgetCondition


# --- then -----------------------------------------------------------------------------------

# Agents by name, all of them, or those that the idle condition found.
Targets = Literal["all", "{idle}"] | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tell:
    targets: Targets
    message: str


@dataclass(frozen=True, slots=True)
class Summon:
    agent: str
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Release:
    targets: Targets


@dataclass(frozen=True, slots=True)
class Shell:
    command: str


@dataclass(frozen=True, slots=True)
class Pause:
    targets: Targets


@dataclass(frozen=True, slots=True)
class Resume:
    targets: Targets


@dataclass(frozen=True, slots=True)
class Scale:
    agent: str
    copies: int


Action = Tell | Summon | Release | Shell | Pause | Resume | Scale


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    trigger: Trigger
    conditions: tuple[Condition, ...]
    action: Action
    auto_named: bool = False
    # Where it stands is not part of what it says: a rule that moved is the same rule.
    line: int = field(default=0, compare=False)


# --- the fleet ------------------------------------------------------------------------------


class AgentState(NamedTuple):
    """`idle_seconds` is None when the agent has no unfinished run: nobody is there to be idle."""

    idle_seconds: float | None = None
    queued: int = 0
    # Failures of runs by window: seconds -> how many ended badly within them.
    failed: Mapping[int, int] = MappingProxyType({})
    spent_percent: float | None = None

    @property
    def alive(self) -> bool:
        return self.idle_seconds is not None


@dataclass(frozen=True)
class Snapshot:
    """All conditions of one tick are judged by the same one."""

    at: datetime
    crew: str
    agents: Mapping[str, AgentState]

    @cached_property
    def idle(self) -> Mapping[str, float]:
        """Who is alive, and for how long nothing was heard of it; found once for all rules."""
        known = ((name, state.idle_seconds) for name, state in self.agents.items())
        return {name: seconds for name, seconds in known if seconds is not None}

    @cached_property
    def known(self) -> dict[Any, Any]:
        """What was found out about it already, by question."""
        return {}
