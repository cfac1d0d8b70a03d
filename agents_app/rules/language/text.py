"""Prints a rule as text that parses to the same rule, and formats durations for messages."""

from datetime import timedelta
from functools import lru_cache

from agents_app.rules.language.rule import (
    Action,
    AliveCondition,
    At,
    BudgetCondition,
    Condition,
    Every,
    FailedCondition,
    IdleCondition,
    Pause,
    QueueCondition,
    Release,
    Resume,
    Rule,
    Scale,
    SendMessage,
    ShellCommand,
    Summon,
    Targets,
    Trigger,
)
from agents_app.triggers import IntervalTrigger

_SPANS = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def rule_text(rule: Rule) -> str:
    """The whole line; an automatic name is left out."""
    return body_text(rule) if rule.auto_named else f"[{rule.name}] {body_text(rule)}"


def body_text(rule: Rule) -> str:
    conditions = f"if {conditions_text(rule.conditions)}" if rule.conditions else ""
    parts = (trigger_text(rule.trigger), conditions, "=>", action_text(rule.action))
    return " ".join(part for part in parts if part)


def trigger_text(trigger: Trigger) -> str:
    match trigger:
        case Every(seconds):
            return f"every {duration_text(seconds)}"
        case At(expression):
            return f"at {expression}"


def conditions_text(conditions: tuple[Condition, ...]) -> str:
    return " and ".join(condition_text(one) for one in conditions)


def condition_text(condition: Condition) -> str:
    match condition:
        case AliveCondition(agents, negate):
            return f"{'not ' if negate else ''}alive({','.join(agents)})"
        case IdleCondition(target, seconds):
            return f"idle({targets_text(target)}) > {duration_text(seconds)}"
        case QueueCondition(agent, more_than):
            return f"queue({agent}) > {more_than}"
        case FailedCondition(agent, more_than, within):
            return f"failed({agent}) > {more_than} in {duration_text(within)}"
        case BudgetCondition(agent, percent):
            return f"budget({agent}) > {percent}%"


def action_text(action: Action) -> str:
    match action:
        case SendMessage(targets, message):
            return f"msg {targets_text(targets)} {_quoted(message)}"
        case Summon(agent, message):
            return f"summon {agent}" + (f" {_quoted(message)}" if message else "")
        case Release(targets):
            return f"release {targets_text(targets)}"
        case ShellCommand(command):
            return f"run {_quoted(command)}"
        case Pause(targets):
            return f"pause {targets_text(targets)}"
        case Resume(targets):
            return f"resume {targets_text(targets)}"
        case Scale(agent, copies):
            return f"scale {agent} {copies}"


def targets_text(targets: Targets | str | tuple[str, ...]) -> str:
    return targets if isinstance(targets, str) else ",".join(targets)


@lru_cache(maxsize=1024)
def duration_text(seconds: int) -> str:
    """`5m`: a duration in the largest unit without a remainder, as it is written in a rule."""
    return IntervalTrigger("", timedelta(seconds=seconds)).expression


def span_text(seconds: float) -> str:
    """`4h 12m`: a measured time in its two largest units."""
    return _span_text(int(seconds))


@lru_cache(maxsize=4096)
def _span_text(whole: int) -> str:
    parts = []
    for size, unit in _SPANS:
        count, whole = divmod(whole, size)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
