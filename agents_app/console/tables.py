"""Values, sentences and tables that a command shows, without a layout; pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agents_app.clock import local
from agents_app.text import harmless

Rows = Sequence[Sequence[object]]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table without layout."""

    columns: Sequence[str]
    cells: Sequence[Sequence[str]]


# A sentence, or a table.
Part = str | Grid
Show = Callable[[Sequence[Part]], None]


def grid(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Grid:
    return Grid(columns, [[cell(value) for value in row] for row in rows])


def cell(value: object) -> str:
    """One line without control characters."""
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        return local(value)
    return " ".join(harmless(str(value)).split())


def plain_lines(rows: Rows) -> list[str]:
    widths = [max(len(str(value)) for value in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(str(v).ljust(width) for v, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def shortened(text: str, width: int = 60) -> str:
    line = cell(text) if text else ""
    return line if len(line) <= width else line[: width - 1] + "…"
