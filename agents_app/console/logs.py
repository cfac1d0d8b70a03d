"""Lines of runs as the commands print them; pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from agents_app.clock import local
from agents_app.console.fleet import LastRun
from agents_app.console.screen import Screen
from agents_app.names import program_name

# Red is kept for errors.
COLOURS = (
    *(("cyan",), ("green",), ("magenta",), ("yellow",), ("blue",)),
    *(("cyan", "bold"), ("green", "bold"), ("magenta", "bold"), ("yellow", "bold")),
)
ALL_OR_NAMES = "--all is every agent: leave the names out, or leave out --all"


class PrintedLine(Protocol):
    """A line of a run, stored or received."""

    @property
    def number(self) -> int: ...

    @property
    def at(self) -> datetime: ...

    @property
    def stream(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def open(self) -> bool:
        """Whether the line has not ended."""
        ...


class LabelledLog:
    """Prints the lines of several agents, each agent in its own colour."""

    def __init__(self, screen: Screen, agents: Iterable[str], *, times: bool) -> None:
        self._screen, self._times = screen, times
        names = sorted(agents)
        self._width = max(map(len, names), default=0)
        self._colours = {name: COLOURS[n % len(COLOURS)] for n, name in enumerate(names)}

    def print(self, agent: str, run_id: int, line: PrintedLine) -> None:
        colour = self._colours.get(agent, COLOURS[0])
        label = self._screen.painted(f"{agent:{self._width}} {run_id} |", *colour)
        stamp = f"{local(line.at)}  " if self._times else ""
        text = self._screen.painted(line.text, "red") if line.stream == "stderr" else line.text
        self._screen.text(f"{stamp}{label} {text}\n")


def line_text(line: PrintedLine, *, times: bool) -> str:
    return f"{local(line.at)}  {line.text}\n" if times else f"{line.text}\n"


def line_as_json(run_id: int, line: PrintedLine) -> dict[str, object]:
    """As the API describes a line; `open` until the line has ended. `run` is an older name."""
    place = {
        "run_id": run_id,
        "run": run_id,
        "number": line.number,
        "stream": line.stream,
        "at": line.at,
    }
    return {**place, "text": line.text, "open": line.open}


def log_as_json(
    agent: str, run: LastRun, lines: Sequence[PrintedLine], *, complete: bool
) -> dict[str, object]:
    output = [line_as_json(run.id, line) for line in lines]
    # `run` and `output` are the names of version 0.1.0, which scripts read.
    same = {"run_id": run.id, "lines": output, "complete": complete}
    return {"agent": agent, **same, "run": run, "output": output}


def first_run_text(agent: str) -> str:
    return f"{agent} has not run yet: waiting for its first run"


def no_run_text(agent: str) -> str:
    """`agent` is empty for all agents."""
    who = f"agent {agent!r}" if agent else "no agent"
    ran = "has not run" if agent else "has run"
    return f"{who} {ran} yet ({program_name()} run AGENT runs one now)"
