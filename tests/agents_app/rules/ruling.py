"""A rules file of a test, looked at by a clock that the test turns."""

from datetime import datetime, timedelta
from pathlib import Path

from agents_app.models import RuleBook, RuleState, RunEvent
from agents_app.rules.engine.actions import perform
from agents_app.rules.engine.decide import Evaluation, RuleAction
from agents_app.rules.engine.judge import judge
from agents_app.rules.engine.outcome import ActionOutcome, write_down
from agents_app.rules.engine.snapshot import FleetView
from agents_app.rules.engine.tick import evaluate_rules
from agents_app.rules.language.rule import Rule, Snapshot
from agents_app.rules.language.source import FILE_NAME
from agents_app.triggers import zone
from tests.agents_app.fleet import NOON

TICK = 10


def errand_of(rule: Rule, rule_id: int = 1) -> RuleAction:
    """As a look at nobody finds it."""
    fleet = FleetView(Snapshot(NOON, "crew", {}), ())
    look = Evaluation(now=NOON, last=NOON, zone=zone("UTC"), fleet=fleet, holder="me")
    return RuleAction(rule_id, rule, judge(rule.conditions, fleet.snapshot), look)


class Rules:
    """Looks as beat does; errands are done at once, or kept when `holding`."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.holding = False
        # Instead of the verbs: what becomes of every errand.
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
        """One look every so many seconds, from the first moment up to the last one."""
        before, now = len(self.fired), start
        while now <= end:
            self.tick(now)
            now += timedelta(seconds=every)
        return self.fired[before:]

    def submit(self, errand: RuleAction, tenant_id: int) -> None:
        self.fired.append((errand.rule.name, errand.at))
        if self.holding:
            self.held.append((errand, tenant_id))
        else:
            write_down(errand, self.outcome or perform(errand, tenant_id), errand.at)

    def end(self, outcome: ActionOutcome, now: datetime) -> None:
        """What was held last ends so."""
        errand, _ = self.held.pop()
        write_down(errand, outcome, now)


def at(clock: str, day: int = 0) -> datetime:
    """A time of that Monday."""
    hour, minute, second = (int(part) for part in (f"{clock}:00").split(":")[:3])
    return NOON.replace(hour=hour, minute=minute, second=second) + timedelta(days=day)


def row(name: str) -> RuleState:
    return RuleState.objects.get(name=name)


def status(name: str) -> tuple[str, str]:
    state = row(name)
    return state.status, state.reason


def book() -> RuleBook:
    return RuleBook.objects.get()


def told(name: str) -> list[str]:
    return list(RunEvent.objects.filter(name=name).order_by("pk").values_list("detail", flat=True))
