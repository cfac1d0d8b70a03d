"""What a harness is: a program, and how to read what that program says of itself."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from agents_app.harness.usage import Spending, cost, count
from agents_app.text import as_text

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Report:
    """What a tool said of its run: its last words, whether it failed, and what it used."""

    text: str = ""
    error: str = ""
    spending: Spending = field(default_factory=Spending)

    @property
    def is_empty(self) -> bool:
        return self == Report()


class OutputReader(Protocol):
    """Takes the tool's output line by line; a line it does not know is just output."""

    # The types of what a tool says when it is done.
    last_words: frozenset[str]

    def read(self, event: Event) -> None: ...

    def report(self) -> Report:
        """What is known so far; of a tool that was killed, too."""
        ...


@dataclass(frozen=True, slots=True)
class Harness:
    """`argv(model, arguments)` never holds the prompt: that is on stdin and in a file."""

    argv: Callable[[str, tuple[str, ...]], tuple[str, ...]]
    reader: Callable[[], OutputReader] | None = None
    # Its instructions are a program, not words for a model.
    body_is_script: bool = False
    takes_model: bool = True


def events(line: bytes) -> Iterator[Event]:
    """The JSON objects of a line; whatever else it is has no meaning here."""
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
    """The table of that name, empty if it is anything else."""
    value = event.get(name)
    return value if isinstance(value, dict) else {}


def text_of(value: Any) -> str:
    """Whatever a tool sent, as a text that databases and people can take."""
    return as_text(value.encode(errors="replace")).strip() if isinstance(value, str) else ""


def spending_of(tokens_in: Any, tokens_out: Any, tokens_cache: Any, cost_usd: Any) -> Spending:
    """Numbers that cannot be true count as nothing."""
    return Spending(count(tokens_in), count(tokens_out), count(tokens_cache), cost(cost_usd))
