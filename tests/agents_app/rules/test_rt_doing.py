"""What a rule did is written down, and beat's end waits for nobody for long."""

import threading
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue

import pytest
from django.db import DataError

from agents_app.rules.engine import doing
from agents_app.rules.engine.decide import RuleAction
from agents_app.rules.engine.outcome import ActionOutcome
from agents_app.rules.language.rule import Every, Resume, Rule
from agents_app.runners.base import RunControl
from tests.agents_app.fleet import NOON
from tests.agents_app.rules.ruling import Rules, at, errand_of, row, status


class Clock:
    """Time goes by only while somebody waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waited: list[float] = []
        monkeypatch.setattr(doing, "time", self)

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)

    def monotonic(self) -> float:
        return sum(self.waited)


class Endless:
    """A thread that outlives every wait for its end."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def join(self, seconds: float) -> None:
        self.clock.waited.append(seconds)


@pytest.mark.django_db
def test_what_the_database_refuses_is_tried_again_after_a_pause(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    written: list[ActionOutcome] = []

    def refuses_twice(_errand: RuleAction, outcome: ActionOutcome, _now: datetime) -> None:
        written.append(outcome)
        if len(written) < 3:
            raise DataError("no")

    monkeypatch.setattr(doing, "write_down", refuses_twice)
    clock = Clock(monkeypatch)
    rule = Rule("nightly", Every(60), (), Resume("all"))
    doing.ActionExecutor(tmp_path, lambda: NOON)._do(
        errand_of(rule), lambda: ActionOutcome("done"), lambda: NOON
    )
    assert [one.sentence for one in written] == ["done", "", ""]
    assert clock.waited == [doing.AGAIN_SECONDS] * 2


@pytest.mark.django_db
def test_what_cannot_begin_has_failed_and_keeps_nothing_else_from_beginning(rules: Rules):
    """Guard: without it the rule would be held by a process that does nothing for it."""
    begun: list[str] = []

    def no_room_for_the_first(errand: RuleAction, _tenant_id: int) -> None:
        if errand.rule.name == "a":
            raise RuntimeError("can't start new thread")
        begun.append(errand.rule.name)

    rules.save('[a] every 1m => run "true"', "[b] every 1m => resume all")
    rules.tick(at("12:00"))
    rules.submit = no_room_for_the_first  # type: ignore[method-assign]
    rules.tick(at("12:01"))
    assert begun == ["b"]
    assert status("a") == ("backoff", "it could not begin: can't start new thread")
    assert (row("a").held_by, row("b").held_by != "") == ("", True)


def test_whoever_asks_goes_on_while_a_verb_is_being_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """A database that answers late must not keep beat from its next look."""
    begun, may_end, written = threading.Event(), threading.Event(), SimpleQueue[int]()

    def blocks(_errand: RuleAction, _tenant_id: int) -> ActionOutcome:
        begun.set()
        assert may_end.wait(60)
        return ActionOutcome("done")

    monkeypatch.setattr(doing, "perform", blocks)
    monkeypatch.setattr(doing, "write_down", lambda errand, *_: written.put(errand.rule_id))
    rule = Rule("nightly", Every(60), (), Resume("all"))
    errands = [errand_of(rule, pk) for pk in (1, 2)]
    doer = doing.ActionExecutor(tmp_path, lambda: NOON)
    doer.submit(errands[0], 1)
    assert begun.wait(60)
    doer.submit(errands[1], 1)
    # Both have returned, and nothing has come of either.
    assert (written.empty(), may_end.is_set()) == (True, False)
    may_end.set()
    assert [written.get(timeout=60), written.get(timeout=60)] == [1, 2]


def test_the_end_of_beat_waits_for_all_commands_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    clock, doer = Clock(monkeypatch), doing.ActionExecutor(tmp_path, lambda: NOON)
    doer._commands = {Endless(clock): RunControl() for _ in range(3)}  # type: ignore[misc]
    doer.stop()
    assert clock.waited == [doing.STOP_SECONDS, 0, 0]
