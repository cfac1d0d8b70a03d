"""The adapters of the rules language: lines, files, conditions and durations."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from agents_app.rules.engine.evaluate import evaluate_conditions
from agents_app.rules.language.line_reader import RuleError
from agents_app.rules.language.parse import parse_conditions, parse_file, parse_line
from agents_app.rules.language.parse_trigger import parse_rule_duration
from agents_app.rules.language.rule import (
    Action,
    AgentState,
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
    Snapshot,
    Summon,
    Targets,
    Trigger,
)

Case = dict[str, Any]


class Names(list[str]):
    """Equal to a list of the same names, or to how many they are: a case may say either."""

    def __eq__(self, other: object) -> bool:
        return len(self) == other if isinstance(other, int) else list(self) == other

    __hash__ = None


def rules_line(text: str) -> Case:
    try:
        rule = parse_line(text)
    except RuleError:
        return {"ok": False}
    return {"ok": True, "ignored": True} if rule is None else {"ok": True, "rule": _rule(rule)}


def rules_file(text: str) -> Case:
    file = parse_file(text)
    return {
        "rules": Names(rule.name for rule in file.rules),
        "errors": [{"line": error.line, "error": error.code} for error in file.errors],
    }


def rules_condition(case: Case) -> Case:
    agents = {name: AgentState(state["idle_s"]) for name, state in case["registered"].items()}
    snapshot = Snapshot(datetime(2026, 1, 1, tzinfo=UTC), "crew", agents)
    result = evaluate_conditions(parse_conditions(case["condition"]), snapshot)
    if not result.idle:
        return {"value": result.holds}
    idle = {"idle": ",".join(result.idle), "idle_duration_s": result.longest_idle_seconds}
    return {"value": result.holds, "vars": idle}


def duration_rules(text: str) -> Case:
    try:
        return {"s": parse_rule_duration(text)}
    except ValueError:
        return {"error": True}


def _rule(rule: Rule) -> Case:
    return {
        "name": None if rule.auto_named else rule.name,
        "auto_named": rule.auto_named,
        "trigger": _trigger(rule.trigger),
        "condition": _conditions(rule.conditions),
        "action": _action(rule.action),
    }


def _trigger(trigger: Trigger) -> Case:
    match trigger:
        case Every(seconds):
            return {"type": "interval", "seconds": seconds}
        case At(expression):
            return {"type": "cron", "expr": expression}


def _conditions(conditions: tuple[Condition, ...]) -> Case | list[Case] | None:
    shaped = [_condition(one) for one in conditions]
    return shaped if len(shaped) > 1 else shaped[0] if shaped else None


def _condition(condition: Condition) -> Case:
    match condition:
        case AliveCondition(agents, negate):
            return {"type": "alive", "negate": negate, "agents": list(agents)}
        case IdleCondition(target, seconds):
            return {"type": "idle", "target": _targets(target), "seconds": seconds}
        case QueueCondition(agent, more_than):
            return {"type": "queue", "agent": agent, "more_than": more_than}
        case FailedCondition(agent, more_than, within):
            return {"type": "failed", "agent": agent, "more_than": more_than, "seconds": within}
        case BudgetCondition(agent, percent):
            return {"type": "budget", "agent": agent, "percent": percent}


def _action(action: Action) -> Case:
    match action:
        case SendMessage(targets, message):
            return {"type": "msg", "targets": _targets(targets), "message": message}
        case Summon(agent, message):
            return {"type": "summon", "agent": agent, "message": message}
        case Release(targets):
            return {"type": "release", "targets": _targets(targets)}
        case ShellCommand(command):
            return {"type": "run", "command": command}
        case Pause(targets):
            return {"type": "pause", "targets": _targets(targets)}
        case Resume(targets):
            return {"type": "resume", "targets": _targets(targets)}
        case Scale(agent, copies):
            return {"type": "scale", "agent": agent, "copies": copies}


def _targets(targets: Targets | str) -> str | list[str]:
    return targets if isinstance(targets, str) else list(targets)


RULES_ADAPTERS: dict[str, Callable[[Any], Any]] = {
    "rules.line": rules_line,
    "rules.file": rules_file,
    "rules.condition": rules_condition,
    "duration.rules": duration_rules,
}
