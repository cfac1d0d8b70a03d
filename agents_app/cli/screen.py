"""What a command prints: tables for a terminal, plain columns for a pipe, JSON for programs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import OutputWrapper

from agents_app.cli.times import iso, local
from agents_app.output import as_text

Rows = Sequence[Sequence[object]]


class Screen:
    def __init__(self, out: OutputWrapper, *, colour: bool = True) -> None:
        self._out = out
        self._colour = colour

    def say(self, text: str) -> None:
        self._out.write(text)

    def text(self, text: str) -> None:
        """As it is, at once: somebody may be watching."""
        self._out.write(text, ending="")
        self._out.flush()

    def json(self, value: object) -> None:
        self._out.write(json.dumps(value, indent=2, default=_plain))

    def json_line(self, value: object) -> None:
        self._out.write(json.dumps(value, default=_plain))
        self._out.flush()

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        cells = [[cell(value) for value in row] for row in rows]
        if self._out.isatty():
            self._rich_table(columns, cells)
        else:
            for line in plain_lines([[name.upper() for name in columns], *cells]):
                self._out.write(line)

    def _rich_table(self, columns: Sequence[str], cells: list[list[str]]) -> None:
        # Here, because a pipe should not pay for what only a terminal needs.
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
        for row in cells:
            # As Text: brackets in people's words are not markup.
            table.add_row(*map(Text, row))
        Console(file=self._out, no_color=not self._colour, highlight=False).print(table)  # type: ignore[arg-type]


def cell(value: object) -> str:
    """One line without control characters, whatever somebody wrote."""
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        return local(value)
    return " ".join(as_text(str(value).encode("utf-8", "replace")).split())


def plain_lines(rows: Rows) -> list[str]:
    widths = [max(len(str(value)) for value in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(str(v).ljust(width) for v, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def shortened(text: str, width: int = 60) -> str:
    line = cell(text) if text else ""
    return line if len(line) <= width else line[: width - 1] + "…"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Path | Exception):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
