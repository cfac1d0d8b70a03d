"""Evaluates the rules file of a test at times that the test chooses."""

from datetime import datetime, timedelta
from pathlib import Path

from agents_app.models import RuleBook, RuleState, RunEvent
from agents_app.rules.engine.decide import Evaluation, RuleAction
from agents_app.rules.engine.evaluate import evaluate_conditions
from agents_app.rules.engine.outcome import ActionOutcome, record_outcome
from agents_app.rules.engine.perform import perform
from agents_app.rules.engine.snapshot import FleetView
from agents_app.rules.engine.tick import evaluate_rules
from agents_app.rules.language.rule import Rule, Snapshot
from agents_app.rules.language.source import FILE_NAME
from agents_app.triggers import zone
from tests.agents_app.fleet import NOON

TICK = 10


def action_of(rule: Rule, rule_id: int = 1) -> RuleAction:
    """The action of a rule that was evaluated for an empty fleet."""
    fleet = FleetView(Snapshot(NOON, "crew", {}), ())
    evaluation = Evaluation(now=NOON, last_tick_at=NOON, zone=zone("UTC"), fleet=fleet, holder="me")
    result = evaluate_conditions(rule.conditions, fleet.snapshot)
    return RuleAction(rule_id, rule, result, evaluation)


class Rules:
    """Looks as beat does; actions are done at once, or kept when `holding`."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.holding = False
        # The outcome of every action, instead of performing it.
        self.outcome: ActionOutcome | None = None
        self.held: list[tuple[RuleAction, int]] = []
        self.fired: list[tuple[str, datetime]] = []

    def save(self, *lines: str) -> None:
        (self.project / FILE_NAME).write_text("\n".join(lines) + "\n")

    def tick(self, now: datetime) -> list[str]:
        """The names of the rules that fired, in order."""
        before = len(self.fired)
        evaluate_rules(now, self.project, self.submit)
        return [name for name, _ in self.fired[before:]]

    def ticks(
        self, start: datetime, end: datetime, every: int = TICK
    ) -> list[tuple[str, datetime]]:
        """A tick every so many seconds from `start` to `end`."""
        before, now = len(self.fired), start
        while now <= end:
            self.tick(now)
            now += timedelta(seconds=every)
        return self.fired[before:]

    def submit(self, action: RuleAction, tenant_id: int) -> None:
        self.fired.append((action.rule.name, action.at))
        if self.holding:
            self.held.append((action, tenant_id))
        else:
            record_outcome(action, self.outcome or perform(action, tenant_id), action.at)

    def end(self, outcome: ActionOutcome, now: datetime) -> None:
        """End the last held action with this outcome."""
        action, _ = self.held.pop()
        record_outcome(action, outcome, now)


def at(clock: str, day: int = 0) -> datetime:
    """A time of the Monday of NOON, or of a day after it."""
    hour, minute, second = (int(part) for part in (f"{clock}:00").split(":")[:3])
    return NOON.replace(hour=hour, minute=minute, second=second) + timedelta(days=day)


def row(name: str) -> RuleState:
    return RuleState.objects.get(name=name)


def status(name: str) -> tuple[str, str]:
    state = row(name)
    return state.status, state.reason


def book() -> RuleBook:
    return RuleBook.objects.get()


def event_details(name: str) -> list[str]:
    return list(RunEvent.objects.filter(name=name).order_by("pk").values_list("detail", flat=True))
