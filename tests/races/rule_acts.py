"""The acts of concurrent beats that evaluate rules, and of a beat killed during a command."""

import os
import signal
import time
from datetime import datetime, timedelta
from pathlib import Path

from agents_app.models import RuleState, WorkItem
from agents_app.rules.engine.decide import RuleAction
from agents_app.rules.engine.executor import ActionExecutor
from agents_app.rules.engine.outcome import record_outcome
from agents_app.rules.engine.perform import perform
from agents_app.rules.engine.tick import evaluate_rules
from agents_app.rules.language.source import FILE_NAME
from tests.races.beat_acts import wait_until
from tests.races.checks import EPOCH

TICK_SECONDS = 10


def evaluate_rules_in_steps(
    start_at: float,
    meeting: str,
    racer: int,
    racers: int,
    steps: int,
    lag_seconds: int,
    project: str,
) -> list[str]:
    """Tick every ten seconds of a clock that all racers share; returns what fired, with its time.

    The clock stands still until each racer has ended its tick, so no pause of this machine is a
    missed tick. `lag_seconds`: the clock of racer n is n times as much behind.
    """
    fired = list[str]()

    def do(action: RuleAction, tenant_id: int) -> None:
        fired.append(f"{action.rule.name} {action.at.isoformat(timespec='minutes')}")
        record_outcome(action, perform(action, tenant_id), action.at)

    wait_until(start_at)
    for step in range(1, steps + 1):
        _meet(Path(meeting), step, racer, racers)
        seconds = step * TICK_SECONDS - racer * lag_seconds
        evaluate_rules(EPOCH + timedelta(seconds=seconds), Path(project), do)
    return fired


def _meet(meeting: Path, step: int, racer: int, racers: int) -> None:
    """Wait until every racer has reached this step."""
    (meeting / f"{step}-{racer}").touch()
    while not all((meeting / f"{step}-{each}").exists() for each in range(racers)):
        time.sleep(0.001)


def evaluate_rules_once(project: str, after_seconds: float) -> None:
    evaluate_rules(EPOCH + timedelta(seconds=after_seconds), Path(project), lambda *_: None)


def start_command_and_die(project: str, after_seconds: float, pid_file: str) -> None:
    """Act as a beat that is killed while the command of a rule runs."""
    executor = ActionExecutor(Path(project), lambda: datetime.now(EPOCH.tzinfo))
    evaluate_rules(EPOCH + timedelta(seconds=after_seconds), Path(project), executor.submit)
    while not (Path(pid_file).exists() and Path(pid_file).read_text().endswith("\n")):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


def rule_status(name: str) -> list[str]:
    state = RuleState.objects.get(name=name)
    return [state.status, state.reason]


def summons() -> list[str]:
    return [f"{at:%H:%M:%S}" for at in WorkItem.objects.values_list("created_at", flat=True)]


def write_rules(project: str, lines: list[str]) -> None:
    Path(project, FILE_NAME).write_text("\n".join(lines))
