"""Output of commands: tables on a terminal, plain columns in a pipe, JSON."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from agents_app.clock import iso
from agents_app.console.tables import Part, Show, grid, plain_lines
from agents_app.text import harmless

_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_OPTIONS = {"bold": "1"}


class Output(Protocol):
    """The output of a management command, or `StandardOutput`."""

    def write(self, text: str = "", /, *, ending: str | None = None) -> object:
        """Writes the text and its ending: a line feed without one."""
        ...

    def flush(self) -> object: ...

    def isatty(self) -> bool: ...


class Screen:
    def __init__(self, out: Output, *, colour: bool = True) -> None:
        self._out = out
        self._colour = colour

    def say(self, text: str) -> None:
        self._out.write(harmless(text))

    def text(self, text: str) -> None:
        """Writes the text unchanged and flushes."""
        self._out.write(text, ending="")
        self._out.flush()

    def painted(self, text: str, colour: str, *more: str) -> str:
        """The text in a colour, if the output has colours; `more` are options such as `bold`."""
        if not (self._colour and self._out.isatty()):
            return text
        codes = [str(30 + _COLOURS.index(colour)), *(_OPTIONS[option] for option in more)]
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m"

    def json(self, value: object) -> None:
        self._out.write(json.dumps(value, indent=2, default=_plain))

    def json_line(self, value: object) -> None:
        self._out.write(json.dumps(value, default=_plain))
        self._out.flush()

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        self.show([grid(columns, rows)])

    def show(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if isinstance(part, str):
                self.say(part)
            elif self._out.isatty():
                # rich is slow to import, and a pipe does not need it.
                from agents_app.console import terminal

                terminal.print_grid(self._out, part, colour=self._colour)
            else:
                for line in plain_lines([[c.upper() for c in part.columns], *part.cells]):
                    self._out.write(line)

    @contextmanager
    def live(self) -> Iterator[Show]:
        """Yields a function that replaces the shown parts; in a pipe it appends them."""
        if self._out.isatty():
            from agents_app.console import terminal

            with terminal.live(self._out, colour=self._colour) as show:
                yield show
        else:
            yield self._show_below

    @contextmanager
    def progress(self, label: str, total: int) -> Iterator[Callable[[int], None]]:
        """A progress bar on a terminal; yields a function that takes the number of done items."""
        if total < 2 or not self._out.isatty():
            yield lambda _done: None
            return
        from agents_app.console import terminal

        with terminal.bar(self._out, label, total, colour=self._colour) as report:
            yield report

    def _show_below(self, parts: Sequence[Part]) -> None:
        self.show([*parts, ""])
        self._out.flush()


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Path | Exception):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be converted to JSON")
