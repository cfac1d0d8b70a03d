"""Bar charts as numbers that a template draws as SVG; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, GAP = 420, 96, 4


@dataclass(frozen=True, slots=True)
class ChartColumn:
    """One position on the axis: its label, its tooltip, and its values by kind."""

    label: str
    tooltip: str
    values: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class ChartBar:
    kind: str
    x: float
    y: float
    width: float
    height: float
    tooltip: str


@dataclass(frozen=True, slots=True)
class BarChart:
    title: str
    top: str
    bars: tuple[ChartBar, ...]
    first: str
    last: str
    width: int = WIDTH
    height: int = HEIGHT


def chart(
    title: str, top: str, columns: Sequence[ChartColumn], *, stacked: bool = False
) -> BarChart:
    """Scales the columns so that the highest fills the chart; `top` is its value as text.

    The values of a column are stacked, or drawn over each other with the last in front.
    """
    highest = max((_height(column, stacked) for column in columns), default=0) or 1
    step = WIDTH / max(1, len(columns))
    bars = [
        bar
        for place, column in enumerate(columns)
        for bar in _bars(column, place * step + GAP / 2, step - GAP, HEIGHT / highest, stacked)
    ]
    ends = (columns[0].label, columns[-1].label) if columns else ("", "")
    return BarChart(title, top, tuple(bars), *ends)


def _height(column: ChartColumn, stacked: bool) -> float:
    values = [value for _, value in column.values]
    return sum(values) if stacked else max(values, default=0)


def _bars(
    column: ChartColumn, x: float, width: float, scale: float, stacked: bool
) -> list[ChartBar]:
    bars: list[ChartBar] = []
    below = 0.0
    for kind, value in column.values:
        if value <= 0:
            continue
        # A bar of less than one pixel would be invisible.
        height = max(1.5, value * scale)
        y = max(0.0, HEIGHT - below - height)
        bars.append(ChartBar(kind, x, y, width, height, column.tooltip))
        below += height if stacked else 0
    return bars
