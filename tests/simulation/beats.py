"""Several concurrent beats, each a process with its own clock, and their common ledger."""

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents_app.conf import ROOT
from tests.parts.stack_part import PrivateStack
from tests.races.arena import Arena, Starter

Draft = dict[str, Any]


class BeatStarter(Starter):
    def __init__(self, stack: PrivateStack) -> None:
        self.log = stack.data.parent / "beats.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.simulation.racers"],
                cwd=ROOT,
                env=stack.env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )


@dataclass(frozen=True)
class Entry:
    due_at: datetime
    decide_at: datetime
    outcome: str
    reason: str

    @property
    def was_missed(self) -> bool:
        return (self.outcome, self.reason) == ("skipped", "missed")


class Beats:
    """All schedules are created at one time, before any beat runs."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena

    def create(self, now: datetime, *drafts: Draft) -> None:
        self.arena.do("create", now=now.isoformat(), drafts=drafts)

    def run(self, *clocks: Iterable[datetime], broken: bool = False) -> None:
        """Run one beat for each clock, concurrently."""
        shown = [[moment.isoformat() for moment in clock] for clock in clocks]
        acts = [("run_beat", {"moments": moments, "broken": broken}) for moments in shown]
        errors = self.arena.race(*acts, seconds=60)
        assert broken or errors == [[]] * len(clocks)

    def ledger(self) -> dict[str, list[Entry]]:
        """The firings of each schedule, by its name, which is its number."""
        found: dict[str, list[Entry]] = {}
        for name, due_at, decide_at, outcome, reason in self.arena.do("ledger"):
            times = datetime.fromisoformat(due_at), datetime.fromisoformat(decide_at)
            found.setdefault(name, []).append(Entry(*times, outcome, reason))
        return found

    def counts(self) -> dict[str, tuple[int, int, str]]:
        """Fired and missed counts and the state of each schedule."""
        counted: dict[str, list[Any]] = self.arena.do("counts")
        return {name: (row[0], row[1], row[2]) for name, row in counted.items()}
