"""Decides at one tick what happens to one rule: nothing, a new due time, or an action."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple
from zoneinfo import ZoneInfo

from agents_app.models import RuleState
from agents_app.rules.engine.evaluate import ConditionResult, evaluate_conditions, fill_template
from agents_app.rules.engine.snapshot import FleetView
from agents_app.rules.language import (
    Action,
    Every,
    Pause,
    Release,
    Resume,
    Rule,
    SendMessage,
    Snapshot,
    Summon,
    Targets,
    Trigger,
    backoff,
    due_after_failure,
    named_agents,
    next_due,
    started_agents,
)

S = RuleState.Status
COMMAND_SECONDS, COMMAND_GRACE_SECONDS = 300.0, 10.0
# Longer than any action takes; only needed for a holding process on another host.
HOLD_TIMEOUT = timedelta(seconds=2 * (COMMAND_SECONDS + COMMAND_GRACE_SECONDS))


class RuleColumns(NamedTuple):
    """The columns of a rule's row that a tick may change, and the revision that was read.

    A NamedTuple, because a tick makes two per rule and other classes are slower to create.
    """

    id: int
    revision: int
    next_due_at: datetime
    evaluated_at: datetime | None
    fired_at: datetime | None
    status: str
    reason: str
    failures: int
    backoff_until: datetime | None
    seen: str
    held_by: str
    held_until: datetime | None


@dataclass(frozen=True)
class Evaluation:
    """What all rules of one tick have in common."""

    now: datetime
    last_tick_at: datetime
    zone: ZoneInfo
    fleet: FleetView
    holder: str
    # Ids of rules whose action was running in a process that is gone.
    abandoned: frozenset[int] = frozenset()
    # Ticks were missed: rules that were due meanwhile do not fire for that time.
    ticks_missed: bool = False
    silent: bool = False
    # Why no rule may fire at all, or empty.
    blocked_reason: str = ""

    @cached_property
    def held_until(self) -> datetime:
        return self.now + HOLD_TIMEOUT


class RuleAction(NamedTuple):
    """One firing of a rule that is to be performed.

    Targets and message are resolved by the executor from the snapshot of the tick, which does not
    change any more, so that the tick does not spend time on it.
    """

    rule_id: int
    rule: Rule
    result: ConditionResult
    evaluation: Evaluation
    # The rule was abandoned when it fired, and remains so until an action has an outcome.
    abandoned: bool = False

    @property
    def at(self) -> datetime:
        return self.evaluation.now

    @property
    def action(self) -> Action:
        return resolve_action(self.rule.action, self.evaluation.fleet.snapshot, self.result)

    @property
    def seen(self) -> str:
        """The availability of the rule's agents when it fired; computed only after a failure."""
        return agents_fingerprint(self.rule, self.evaluation.fleet)


Decision = tuple[RuleColumns, RuleAction | None]


def decide(rule: Rule, read: RuleColumns, evaluation: Evaluation) -> Decision:
    """The columns to write for the rule, and the action if it fires."""
    columns = _without_gone_holder(read, evaluation)
    if evaluation.ticks_missed:
        return _restarted(rule, columns, evaluation), None
    columns = _retried_after_agents_changed(rule, columns, evaluation)
    if columns.next_due_at > evaluation.now:
        return columns, None
    following = _following(rule.trigger, columns, evaluation)
    if columns.held_by:
        reason = "the previous action is still running"
        return _evaluated(columns, evaluation, following, columns.status, reason), None
    if evaluation.blocked_reason:
        return _skipped(columns, evaluation, following, evaluation.blocked_reason), None
    result = evaluate_conditions(rule.conditions, evaluation.fleet.snapshot)
    if not result.holds:
        return _skipped(columns, evaluation, following, result.reason), None
    if evaluation.silent and isinstance(rule.action, SendMessage):
        return _skipped(columns, evaluation, following, "messages are silenced"), None
    fired = _evaluated(columns, evaluation, following, S.RUN, result.reason, fires=True)
    abandoned = columns.status == S.ABANDONED
    return fired, RuleAction(columns.id, rule, result, evaluation, abandoned)


# --- steps ----------------------------------------------------------------------------------


def _without_gone_holder(columns: RuleColumns, evaluation: Evaluation) -> RuleColumns:
    if columns.id not in evaluation.abandoned:
        return columns
    reason = "beat ended while the action was running"
    return columns._replace(status=S.ABANDONED, reason=reason, held_by="", held_until=None)


def _restarted(rule: Rule, columns: RuleColumns, evaluation: Evaluation) -> RuleColumns:
    """A rule after missed ticks: due again by its trigger, counted from now."""
    due = next_due(rule.trigger, evaluation.now, evaluation.zone)
    if columns.backoff_until is None:
        return columns._replace(next_due_at=due)
    # A clock that was set back must not turn a backoff of an hour into one of a day.
    until = min(columns.backoff_until, evaluation.now + backoff(columns.failures))
    due = due_after_failure(rule.trigger, due, until, evaluation.zone)
    return columns._replace(next_due_at=due, backoff_until=until)


def _retried_after_agents_changed(
    rule: Rule, columns: RuleColumns, evaluation: Evaluation
) -> RuleColumns:
    """End the backoff if the availability of the rule's agents has changed since it failed."""
    if not columns.failures or columns.held_by or not columns.seen:
        return columns
    if columns.seen == agents_fingerprint(rule, evaluation.fleet):
        return columns
    fired_at = columns.fired_at or evaluation.last_tick_at
    if isinstance(rule.trigger, Every):
        due = max(fired_at + timedelta(seconds=rule.trigger.seconds), evaluation.now)
    else:
        due = next_due(rule.trigger, max(fired_at, evaluation.last_tick_at), evaluation.zone)
    return columns._replace(
        next_due_at=due,
        status=S.WAITING,
        reason="its agents have changed since it failed",
        failures=0,
        backoff_until=None,
        seen="",
    )


def _following(trigger: Trigger, columns: RuleColumns, evaluation: Evaluation) -> datetime:
    """The next due time; an interval keeps its phase however late this tick is."""
    if isinstance(trigger, Every):
        following = columns.next_due_at + timedelta(seconds=trigger.seconds)
        if following > evaluation.now:
            return following
    return next_due(trigger, evaluation.now, evaluation.zone)


def _skipped(
    columns: RuleColumns, evaluation: Evaluation, following: datetime, reason: str
) -> RuleColumns:
    """An abandoned rule keeps that status until an action has an outcome."""
    status = S.ABANDONED if columns.status == S.ABANDONED else S.SKIP
    return _evaluated(columns, evaluation, following, status, reason)


def _evaluated(
    columns: RuleColumns,
    evaluation: Evaluation,
    following: datetime,
    status: str,
    reason: str,
    *,
    fires: bool = False,
) -> RuleColumns:
    """The columns of a rule that was due; `_replace` would take five times as long."""
    return RuleColumns(
        columns.id,
        columns.revision,
        following,
        evaluation.now,
        evaluation.now if fires else columns.fired_at,
        status,
        reason[:500],
        columns.failures,
        columns.backoff_until,
        columns.seen,
        evaluation.holder if fires else columns.held_by,
        evaluation.held_until if fires else columns.held_until,
    )


# --- targets --------------------------------------------------------------------------------


def resolve_action(action: Action, snapshot: Snapshot, result: ConditionResult) -> Action:
    """The action with the agents that `all` and `{idle}` stand for, and its message filled in.

    A command is left as it is: names of agents must never become part of a shell's text.
    """
    match action:
        case SendMessage(targets, message):
            names = _agents_of(targets, snapshot, result)
            return SendMessage(names, fill_template(message, snapshot, result))
        case Summon(agent, message):
            return Summon(agent, message and fill_template(message, snapshot, result))
        case Release(targets):
            return Release(_agents_of(targets, snapshot, result))
        case Pause("all") | Resume("all"):
            # Including agents without a run.
            return replace(action, targets=tuple(snapshot.agents))
        case Pause(targets) | Resume(targets):
            return replace(action, targets=_agents_of(targets, snapshot, result))
    return action


def _agents_of(targets: Targets, snapshot: Snapshot, result: ConditionResult) -> tuple[str, ...]:
    if targets == "all":
        return tuple(snapshot.idle)
    return result.idle if targets == "{idle}" else targets


def agents_fingerprint(rule: Rule, fleet: FleetView) -> str:
    """A hash of the availability of the rule's agents.

    Runs that a rule may have started do not count for the agents that the rule itself starts, so
    its own effect is not a change.
    """
    names, started = named_agents(rule), started_agents(rule.action)
    known = {name: fleet.availability[name] for name in names if name in fleet.availability}
    for name in started:
        if name in known:
            known[name] = known[name]._replace(alive=name in fleet.alive_otherwise)
    described = ";".join(f"{name}={tuple(known.get(name, ()))}" for name in names)
    return sha256(described.encode()).hexdigest() if names else ""
