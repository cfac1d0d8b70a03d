"""What a rule did is written down, and beat's end waits for nobody for long."""

from datetime import datetime
from pathlib import Path

import pytest
from django.db import DataError

from agents_app.rules import doing
from agents_app.rules.decide import Errand
from agents_app.rules.outcome import Outcome
from agents_app.rules.rule import Every, Resume, Rule
from agents_app.runners.base import RunControl
from agents_app.triggers import zone
from tests.agents.fleet import NOON


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
    written: list[Outcome] = []

    def refuses_twice(_errand: Errand, outcome: Outcome, _now: datetime) -> None:
        written.append(outcome)
        if len(written) < 3:
            raise DataError("no")

    monkeypatch.setattr(doing, "write_down", refuses_twice)
    clock = Clock(monkeypatch)
    rule = Rule("nightly", Every(60), (), Resume("all"))
    errand = Errand(1, rule, rule.action, NOON, zone("UTC"), "me", {})
    doing.Doer(tmp_path, lambda: NOON)._do(errand, lambda: Outcome("done"), lambda: NOON)
    assert [one.sentence for one in written] == ["done", "", ""]
    assert clock.waited == [doing.AGAIN_SECONDS] * 2


def test_the_end_of_beat_waits_for_all_commands_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    clock, doer = Clock(monkeypatch), doing.Doer(tmp_path, lambda: NOON)
    doer._commands = {Endless(clock): RunControl() for _ in range(3)}  # type: ignore[misc]
    doer.stop()
    assert clock.waited == [doing.STOP_SECONDS, 0, 0]
