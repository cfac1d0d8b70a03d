"""Log lines of processes as short lines for people: `00:50:22 heartbeat #3 succeeded in 14 ms`.

The processes write JSON; the supervisor, which has the terminal, renders it.
"""

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

# The line of the run says the same.
HIDDEN = frozenset({"firing.claimed", "firing.started"})
# Fields that identify rows, or that the line has elsewhere.
_UNSHOWN = frozenset(
    {
        *(
            "trace_id",
            "tenant_id",
            "agent_id",
            "run_id",
            "schedule_id",
            "firing_id",
            "work_item_id",
        ),
        *("event", "level", "logger", "timestamp", "trigger", "agent", "detail", "exception"),
    }
)
_LOUD = {"warning", "error", "critical"}
# Runs whose start is remembered, to show how long they took.
_MOST_STARTS = 10_000


@dataclass(slots=True)
class ReadableLine:
    """`subject` is the agent or the process, which has a colour of its own."""

    at: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.at} {self.subject} {self.text}"


@dataclass(slots=True)
class ReadableLog:
    """Renders lines of all processes; knows the starts of running runs."""

    _starts: OrderedDict[int, datetime] = field(default_factory=OrderedDict)

    def render(self, role: str, line: str) -> ReadableLine | None:
        """None: the line is not shown. A line that is not JSON is shown as it is."""
        entry = _entry_of(line)
        if entry is None:
            return ReadableLine(_clock(datetime.now(UTC)), role, line)
        name = str(entry["event"])
        if name in HIDDEN and entry.get("level") not in _LOUD:
            return None
        moment = _moment(entry)
        subject, text = str(entry.get("agent") or role), self._text(name, entry, moment)
        if entry.get("level") in _LOUD:
            text = f"{str(entry['level']).upper()} {text}"
        return ReadableLine(_clock(moment), subject, text)

    def _text(self, name: str, entry: Mapping[str, Any], moment: datetime) -> str:
        run, detail = entry.get("run_id"), str(entry.get("detail") or "")
        if not name.startswith("run.") or not isinstance(run, int):
            rest = " ".join([name.replace(".", " ").replace("_", " "), *_facts(entry)])
            return f"{rest}: {detail}" if detail else rest
        state = name.removeprefix("run.").replace("_", " ")
        if state == "started":
            self._remember(run, moment)
            detail = detail or str(entry.get("trigger") or "")
            return f"#{run} started" + (f" ({detail})" if detail else "")
        began = self._starts.pop(run, None)
        took = f" in {_duration((moment - began).total_seconds())}" if began else ""
        return f"#{run} {state}{took}" + (f": {detail}" if detail else "")

    def _remember(self, run: int, moment: datetime) -> None:
        self._starts[run] = moment
        while len(self._starts) > _MOST_STARTS:
            self._starts.popitem(last=False)


def _entry_of(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and "event" in entry else None


def _moment(entry: Mapping[str, Any]) -> datetime:
    try:
        return datetime.fromisoformat(str(entry.get("timestamp")))
    except ValueError:
        return datetime.now(UTC)


def _clock(moment: datetime) -> str:
    """In the time zone of the terminal."""
    return f"{moment.astimezone():%H:%M:%S}"


def _facts(entry: Mapping[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in entry.items() if key not in _UNSHOWN]


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
