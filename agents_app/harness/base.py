"""The interface of a harness: a program and the reader of its reports."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from agents_app.harness.usage import Spending, cost, count
from agents_app.text import as_text

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Report:
    """What a program reported about its run: the result, an error, and the usage."""

    text: str = ""
    error: str = ""
    spending: Spending = field(default_factory=Spending)

    @property
    def is_empty(self) -> bool:
        return self == Report()


class OutputReader(Protocol):
    """Reads the events in the output of a program; unknown events are ignored."""

    # The types of the last event of a program.
    final_events: frozenset[str]

    def read(self, event: Event) -> None: ...

    def report(self) -> Report:
        """The report so far; complete or not."""
        ...


@dataclass(frozen=True, slots=True)
class Harness:
    """`argv(model, arguments)` never contains the prompt, which is on stdin and in a file."""

    argv: Callable[[str, tuple[str, ...]], tuple[str, ...]]
    reader: Callable[[], OutputReader] | None = None
    # The instructions are a program, not a prompt for a model.
    body_is_script: bool = False
    takes_model: bool = True
    # The command inside the sandbox of a run; None: the same. A note for the log says the reason.
    inside_sandbox: Callable[[tuple[str, ...]], tuple[str, ...]] | None = None
    sandbox_note: str = ""


def events(line: bytes) -> Iterator[Event]:
    """The JSON objects of a line; none if the line is other output."""
    if line[:1] not in (b"{", b"["):
        return
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        return
    for each in read if isinstance(read, list) else [read]:
        if isinstance(each, dict):
            yield each


def part(event: Event, name: str) -> Event:
    """The object of that name; empty if it is missing or not an object."""
    value = event.get(name)
    return value if isinstance(value, dict) else {}


def text_of(value: Any) -> str:
    """The value as text that can be stored; empty if it is not a string."""
    return as_text(value.encode(errors="replace")).strip() if isinstance(value, str) else ""


def spending_of(tokens_in: Any, tokens_out: Any, tokens_cache: Any, cost_usd: Any) -> Spending:
    """Impossible numbers count as 0."""
    return Spending(count(tokens_in), count(tokens_out), count(tokens_cache), cost(cost_usd))
