"""A run's output as numbered lines, all at once or page by page, plain or with their looks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from agents_app.output import LogCutter, LogLine, Output, Piece, fed_from, output_segments_after

# Up to 64 kB each.
PIECES_IN_A_PAGE = 32


@dataclass(frozen=True, slots=True)
class NumberedLine:
    """As old as its start, in the order in which they ended."""

    number: int
    at: datetime
    stream: str
    text: str
    open: bool = False

    def shown(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "at": self.at.timestamp(),
            "stream": self.stream,
            "text": self.text,
        }


class LineCutter:
    """Keeps what is not a whole line yet, of each stream."""

    def __init__(self) -> None:
        self._begun: dict[str, tuple[datetime, list[str]]] = {}
        self._count = 0

    def feed(self, piece: Piece) -> Iterator[NumberedLine]:
        *whole, rest = piece.text.split("\n")
        for text in whole:
            at, parts = self._begun.pop(piece.stream, (piece.at, []))
            yield self._line(piece.stream, at, [*parts, text])
        if rest:
            self._begun.setdefault(piece.stream, (piece.at, []))[1].append(rest)

    def rest(self) -> Iterator[NumberedLine]:
        """When there is no more to come."""
        for stream, (at, parts) in self._begun.items():
            yield self._line(stream, at, parts)
        self._begun.clear()

    def _line(self, stream: str, at: datetime, parts: list[str]) -> NumberedLine:
        self._count += 1
        return NumberedLine(self._count - 1, at, stream, "".join(parts))


def as_lines(pieces: Iterable[Piece], *, ended: bool) -> Iterator[NumberedLine]:
    cutter = LineCutter()
    for piece in pieces:
        yield from cutter.feed(piece)
    if ended:
        yield from cutter.rest()


class AnyLine(Protocol):
    """What a stream needs to know of a line; one that is open may be sent again, changed."""

    @property
    def number(self) -> int: ...
    @property
    def open(self) -> bool: ...
    def shown(self) -> dict[str, Any]: ...


class LineReader:
    """The lines of one run from the first on, a page at a time, while it prints them."""

    def __init__(self, run_id: int) -> None:
        self._output = Output(run_id)
        self._cutter = LineCutter()
        # Up to this piece it was read.
        self.seq = 0

    def page(self) -> list[AnyLine]:
        pieces = self._output.page(PIECES_IN_A_PAGE)
        self.seq = pieces[-1].seq if pieces else 2**63
        return self._cut(pieces)

    def rest(self) -> list[AnyLine]:
        return [*self._cut(self._output.rest()), *self._cutter.rest()]

    def _cut(self, pieces: Iterable[Piece]) -> list[AnyLine]:
        return [line for piece in pieces for line in self._cutter.feed(piece)]


class LogReader:
    """The same for people who look at it: with colours, and with the lines that still grow."""

    def __init__(self, run_id: int, after: int) -> None:
        self._run_id = run_id
        self._first = after + 1
        self._cutter = LogCutter()
        self.seq = 0

    def page(self) -> list[AnyLine]:
        rows = output_segments_after(self._run_id, self.seq, PIECES_IN_A_PAGE)
        self.seq = rows[-1][0] if rows else 2**63
        lines = [line for _, piece in rows for line in fed_from(self._cutter, piece, self._first)]
        return [*lines, *self._cutter.open_lines()]

    def rest(self) -> list[AnyLine]:
        lines: list[LogLine] = self._cutter.rest()
        return [*lines]
