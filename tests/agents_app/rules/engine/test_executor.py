"""The executor records the outcome of every action, and stops within its time limit."""

import threading
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue

import pytest
from django.db import DataError

from agents_app.rules.engine import executor
from agents_app.rules.engine.decide import RuleAction
from agents_app.rules.engine.outcome import ActionOutcome
from agents_app.rules.language.rule import Every, Resume, Rule
from agents_app.runners.base import RunControl
from tests.agents_app.fleet import NOON
from tests.agents_app.rules.engine.rules_clock import Rules, action_of, at, row, status


class Clock:
    """Time passes only during a sleep or a join."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waited: list[float] = []
        monkeypatch.setattr(executor, "time", self)

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)

    def monotonic(self) -> float:
        return sum(self.waited)


class Endless:
    """A thread that does not end within any join."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def join(self, seconds: float) -> None:
        self.clock.waited.append(seconds)


@pytest.mark.django_db
def test_an_outcome_that_the_database_refuses_is_written_again_after_a_pause(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    written: list[ActionOutcome] = []

    def refuses_twice(_action: RuleAction, outcome: ActionOutcome, _now: datetime) -> None:
        written.append(outcome)
        if len(written) < 3:
            raise DataError("no")

    monkeypatch.setattr(executor, "record_outcome", refuses_twice)
    clock = Clock(monkeypatch)
    rule = Rule("nightly", Every(60), (), Resume("all"))
    executor.ActionExecutor(tmp_path, lambda: NOON)._perform_and_record(
        action_of(rule), lambda: ActionOutcome("done"), lambda: NOON
    )
    assert [one.done for one in written] == ["done", "", ""]
    assert clock.waited == [executor.RETRY_SECONDS] * 2


@pytest.mark.django_db
def test_an_action_that_cannot_start_has_failed_and_does_not_stop_the_others(rules: Rules):
    """Otherwise the rule would be held by an action that never runs."""
    begun: list[str] = []

    def no_thread_for_the_first(action: RuleAction, _tenant_id: int) -> None:
        if action.rule.name == "a":
            raise RuntimeError("can't start new thread")
        begun.append(action.rule.name)

    rules.save('[a] every 1m => run "true"', "[b] every 1m => resume all")
    rules.tick(at("12:00"))
    rules.submit = no_thread_for_the_first  # type: ignore[method-assign]
    rules.tick(at("12:01"))
    assert begun == ["b"]
    assert status("a") == ("backoff", "the action could not start: can't start new thread")
    assert (row("a").held_by, row("b").held_by != "") == ("", True)


def test_submit_returns_while_an_action_is_being_performed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """A slow database must not delay the next tick of beat."""
    begun, may_end, written = threading.Event(), threading.Event(), SimpleQueue[int]()

    def blocks(_action: RuleAction, _tenant_id: int) -> ActionOutcome:
        begun.set()
        assert may_end.wait(60)
        return ActionOutcome("done")

    monkeypatch.setattr(executor, "perform", blocks)
    monkeypatch.setattr(executor, "record_outcome", lambda action, *_: written.put(action.rule_id))
    rule = Rule("nightly", Every(60), (), Resume("all"))
    actions = [action_of(rule, pk) for pk in (1, 2)]
    runner = executor.ActionExecutor(tmp_path, lambda: NOON)
    runner.submit(actions[0], 1)
    assert begun.wait(60)
    runner.submit(actions[1], 1)
    # Both calls have returned, and no outcome is recorded.
    assert (written.empty(), may_end.is_set()) == (True, False)
    may_end.set()
    assert [written.get(timeout=60), written.get(timeout=60)] == [1, 2]


def test_stop_waits_for_all_commands_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    clock, runner = Clock(monkeypatch), executor.ActionExecutor(tmp_path, lambda: NOON)
    runner._commands = {Endless(clock): RunControl() for _ in range(3)}  # type: ignore[misc]
    runner.stop()
    assert clock.waited == [executor.STOP_SECONDS, 0, 0]
