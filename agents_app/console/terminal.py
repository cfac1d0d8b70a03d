"""Tables on a terminal; a table wider than the terminal is printed as records.

Only this module uses rich, and it is imported only for output to a terminal.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from agents_app.console.tables import Grid, Part, Show
from agents_app.text import harmless

# At this width a table reports the width that it needs.
VERY_WIDE = 10_000
# A name is not wrapped to lines that are shorter.
NARROWEST_NAME = 20
# The columns whose words are states, which have colours.
STATES = {"state", "last run", "outcome", "verdict", "decision", "run", "work", "result"}
TONES = {
    "green": "succeeded done active alive enabled matched ok completed started",
    "red": "failed timed_out lost dead silent invalid dropped unparseable wrong",
    "cyan": "running admitted busy",
    "yellow": "pending polling queued paused skipped cleared draining warning at_capacity",
    "bright_black": "disabled canceled stopped ignored unmatched idle",
}


def print_grid(out: Any, grid: Grid, *, colour: bool) -> None:
    console = _console(out, colour)
    console.print(_fitting(console, grid))


@contextmanager
def live(out: Any, *, colour: bool) -> Iterator[Show]:
    """Uses the alternate screen: no flicker, and the previous content is restored."""
    console = _console(out, colour)
    with Live(console=console, screen=True, auto_refresh=False) as picture:

        def show(parts: Sequence[Part]) -> None:
            drawn: list[RenderableType] = [
                Text(harmless(part)) if isinstance(part, str) else _fitting(console, part)
                for part in parts
            ]
            picture.update(Group(*drawn), refresh=True)

        yield show


@contextmanager
def bar(out: Any, label: str, total: int, *, colour: bool) -> Iterator[Any]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = _console(out, colour)
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task(label, total=total)
        yield lambda done: progress.update(task, completed=done)


def _console(out: Any, colour: bool) -> Console:
    return Console(file=out, no_color=not colour, highlight=False)


def _fitting(console: Console, grid: Grid) -> RenderableType:
    """A table if no word has to be split, except names in the first column at their hyphens,
    otherwise records."""
    needed = _width_of(console, grid)
    if needed.minimum <= console.width:
        return _table(grid)
    longest = max((len(word) for row in grid.cells for word in row[0].split()), default=0)
    # So narrow that no other column is wrapped.
    narrow = max(NARROWEST_NAME, longest - (needed.maximum - console.width))
    narrower = _with_names_in_lines(grid, narrow)
    fits = _width_of(console, narrower).minimum <= console.width
    return _table(narrower) if fits else _records(grid)


def _width_of(console: Console, grid: Grid) -> Measurement:
    anywhere = console.options.update(width=VERY_WIDE)
    return Measurement.get(console, anywhere, _table(grid))


def _with_names_in_lines(grid: Grid, width: int) -> Grid:
    """Long names of agents are common, and a record for each agent would fill the screen."""
    cells = [
        ["\n".join(wrap(first, width, break_long_words=False)), *others]
        for first, *others in grid.cells
    ]
    return Grid(grid.columns, cells)


def _table(grid: Grid) -> Table:
    table = Table(*grid.columns, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    # Rich would shorten the widest column, although other columns have words to wrap between.
    table.columns[0].no_wrap = any("\n" in first for first, *_ in grid.cells)
    for row in grid.cells:
        table.add_row(*map(_text, grid.columns, row))
    return table


def _records(grid: Grid) -> RenderableType:
    records: list[RenderableType] = []
    for row in grid.cells:
        record = Table.grid(padding=(0, 2))
        record.add_column(style="bold", no_wrap=True)
        record.add_column(overflow="fold")
        for name, cell in zip(grid.columns, row, strict=True):
            record.add_row(name, _text(name, cell))
        records += [record, Text()]
    return Group(*records)


def _text(column: str, cell: str) -> Text:
    """A Text, so that rich does not read brackets as markup."""
    text = Text(cell)
    if column in STATES:
        for tone, words in TONES.items():
            text.highlight_regex(rf"\b({'|'.join(words.split())})\b", tone)
    return text
