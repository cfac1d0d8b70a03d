"""A parsed rule, and the state of the fleet against which it is evaluated; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

# `requested_by` of everything that a rule requests is this prefix and the name of the rule.
REQUESTED_BY_PREFIX = "rule "

# --- triggers -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Every:
    seconds: int


@dataclass(frozen=True, slots=True)
class At:
    """Five cron fields, in the time zone of the project."""

    expression: str


Trigger = Every | At


# --- conditions -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AliveCondition:
    """Each of the agents has an unfinished run; negated: at least one of the agents has none."""

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
class FailedCondition:
    agent: str
    more_than: int
    within_seconds: int


@dataclass(frozen=True, slots=True)
class BudgetCondition:
    """The agent has used more than `percent` of the tightest budget that applies to it."""

    agent: str
    percent: int


Condition = AliveCondition | IdleCondition | QueueCondition | FailedCondition | BudgetCondition


# --- actions --------------------------------------------------------------------------------

# Agents by name, all agents, or the agents that the idle condition found.
Targets = Literal["all", "{idle}"] | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SendMessage:
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
class ShellCommand:
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


Action = SendMessage | Summon | Release | ShellCommand | Pause | Resume | Scale


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    trigger: Trigger
    conditions: tuple[Condition, ...]
    action: Action
    auto_named: bool = False
    # Not compared: a rule that moved to another line is the same rule.
    line: int = field(default=0, compare=False)


# --- the fleet ------------------------------------------------------------------------------


class AgentState(NamedTuple):
    """`idle_seconds` is None when the agent has no unfinished run."""

    idle_seconds: float | None = None
    queued: int = 0
    # Window in seconds -> number of runs that failed within it.
    failed: Mapping[int, int] = MappingProxyType({})
    spent_percent: float | None = None

    @property
    def alive(self) -> bool:
        return self.idle_seconds is not None


@dataclass(frozen=True)
class Snapshot:
    """The state of the fleet at one time; all conditions of a tick are evaluated against it."""

    at: datetime
    crew: str
    agents: Mapping[str, AgentState]

    @cached_property
    def idle(self) -> Mapping[str, float]:
        """Idle seconds of each agent that is alive; computed once for all rules."""
        states = ((name, state.idle_seconds) for name, state in self.agents.items())
        return {name: seconds for name, seconds in states if seconds is not None}

    @cached_property
    def idle_results(self) -> dict[Any, Any]:
        """Cache for the evaluation of idle conditions, by target and seconds."""
        return {}
