"""The result lines of the benchmarks, their limits, and the printed table."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table

_PLAIN_WIDTH = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A measurement of Drover and its peer; at most one of the limits is set."""

    what: str
    on: str
    drover: float
    peer: float | None = None
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    at_least_of_peer: float | None = None
    at_most_of_peer: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.drover / self.peer if self.peer else None

    @property
    def must(self) -> str:
        if self.at_most is not None:
            return f"<= {self.at_most:g} {self.unit}"
        if self.at_least is not None:
            return f">= {self.at_least:g} {self.unit}"
        if self.at_most_of_peer is not None:
            return f"<= {self.at_most_of_peer:.1f} x peer"
        return "" if self.at_least_of_peer is None else f">= {self.at_least_of_peer:.1f} x peer"

    @property
    def missed(self) -> bool:
        if self.at_most is not None:
            return self.drover > self.at_most
        if self.at_least is not None:
            return self.drover < self.at_least
        if self.at_least_of_peer is not None:
            return self.ratio is None or self.ratio < self.at_least_of_peer
        if self.at_most_of_peer is not None:
            return self.ratio is None or self.ratio > self.at_most_of_peer
        return False

    @property
    def verdict(self) -> str:
        if not self.must:
            return ""
        return "missed" if self.missed else "reached"


def show(rows: Sequence[Row], console: Console) -> None:
    """Print with lines and colours on a terminal, in plain columns to a pipe."""
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for header in ("what", "on"):
        table.add_column(header)
    for header in ("Drover", "peer", "ratio"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("must reach", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row), style="red" if row.missed else None)
    console.print(table)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.what,
        row.on,
        _number(row.drover, row.unit),
        "" if row.peer is None else _number(row.peer, row.unit),
        "" if row.ratio is None else f"{row.ratio:.2f}",
        row.must,
        row.verdict,
    )


def _number(value: float, unit: str) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}"


def new_console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=_PLAIN_WIDTH)
