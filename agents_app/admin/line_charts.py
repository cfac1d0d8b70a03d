"""Line charts over time as points of an SVG; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agents_app.admin.timeline import PIECES, TimelineWindow

# The coordinate system of the SVG, which the page stretches.
WIDTH, HEIGHT = 600, 100
Point = tuple[datetime, float]


@dataclass(frozen=True, slots=True)
class LineChart:
    """`line` and `area` are points of an SVG of WIDTH by HEIGHT; empty without data."""

    title: str
    latest: str
    # The extreme value of the window: "max 5 s" or "min 2 GB".
    bound: str
    line: str
    area: str
    about: str = ""

    @property
    def label(self) -> str:
        """The text alternative of the SVG."""
        return f"{self.title}: now {self.latest}, {self.bound}"


def chart(
    title: str,
    points: Iterable[Point],
    window: TimelineWindow,
    *,
    unit: str = "",
    top: float | None = None,
    digits: int = 0,
    about: str = "",
    lowest: bool = False,
) -> LineChart:
    """Draws the highest value of each interval, or the lowest if `lowest` is set.

    The scale ends at `top` or at the highest value.
    """
    binned = _binned(points, window, -1 if lowest else 1)
    if not binned:
        return LineChart(title, "-", "", "", "", about)
    values = [value for _, value in binned]
    highest = max(values)
    bound = f"min {_text(min(values), unit, digits)}" if lowest else ""
    scale = max(top or highest, highest) or 1
    places = [(_x(at, window), round(HEIGHT * (1 - value / scale), 1)) for at, value in binned]
    return LineChart(
        title,
        _text(binned[-1][1], unit, digits),
        bound or f"max {_text(highest, unit, digits)}",
        _line(places),
        _area(places),
        about,
    )


def _binned(points: Iterable[Point], window: TimelineWindow, sign: int) -> list[Point]:
    """One point for each interval of the window, which keeps the extreme values."""
    kept: dict[int, Point] = {}
    for at, value in points:
        if window.since <= at <= window.until:
            number = int((at - window.since).total_seconds() / window.piece_seconds)
            piece = min(number, PIECES - 1)
            if piece not in kept or sign * value >= sign * kept[piece][1]:
                kept[piece] = (at, value)
    return sorted(kept.values())


def _x(at: datetime, window: TimelineWindow) -> float:
    return round(window.percent(at) * WIDTH / 100, 1)


def _line(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in places)


def _area(places: Sequence[tuple[float, float]]) -> str:
    first, last = places[0][0], places[-1][0]
    return f"{first},{HEIGHT} {_line(places)} {last},{HEIGHT}"


def _text(value: float, unit: str, digits: int) -> str:
    return f"{value:,.{digits}f}{f' {unit}' if unit else ''}"
