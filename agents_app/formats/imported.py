"""What a reader of a foreign format returns: agents, their schedules, and report lines."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agents_app.formats.report import ReportLine

# The fires of the old system after an instant, in UTC and in order.
OldFires = Callable[[datetime], Iterator[datetime]]
_SECRET = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)


def no_fires(_after: datetime) -> Iterator[datetime]:
    return iter(())


def looks_secret(variable: str) -> bool:
    """Whether a variable of this name may have a secret, which no file of a project should have."""
    return bool(_SECRET.search(variable))


@dataclass(frozen=True, slots=True)
class ImportContext:
    """What a reader must know beside the text: the time, and the host's time zone and users."""

    now: datetime
    host_zone: str
    users: frozenset[str] = frozenset({"root"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSchedule:
    """One schedule: its text and fires in the old system, and its fields in Drover.

    Without an `expression` the schedule has no counterpart in Drover and is not written.
    """

    name: str
    old: str
    expression: str = ""
    timezone: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    old_fires: OldFires = no_fires


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedAgent:
    """One agent; `key` identifies it in its source, so that a later import finds it again.

    `scale` is the number of slots when it is enabled. An agent that `needs_work`, or whose scale is
    0 in the old system, is written disabled in any case. One that `is_existing` must already be in
    the project, and only schedules are added to it. Without a `harness`, `fields` has a command.
    """

    key: str
    name: str
    file: str
    line: int
    description: str
    harness: str = "shell"
    scale: int = 1
    body: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    schedules: tuple[ImportedSchedule, ...] = ()
    needs_work: bool = False
    is_existing: bool = False

    @property
    def can_be_enabled(self) -> bool:
        return not self.needs_work and self.scale > 0


@dataclass(frozen=True, slots=True)
class Imported:
    """The content of a source; `errors` are parts that were left out."""

    agents: tuple[ImportedAgent, ...] = ()
    report: tuple[ReportLine, ...] = ()
    errors: tuple[ReportLine, ...] = ()

    def __add__(self, other: "Imported") -> "Imported":
        return Imported(
            self.agents + other.agents, self.report + other.report, self.errors + other.errors
        )
