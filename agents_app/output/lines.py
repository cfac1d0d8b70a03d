"""What a run printed as lines for people to look at: numbered, styled, also while they grow; pure.

A line is what a terminal shows when the next one begins, so a progress bar is one line however
often it was drawn. Lines are numbered in the order in which they ended, those of both streams.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import islice, takewhile
from typing import Any

from agents_app.output.ansi import Style, StyledSpan, read_line, style_after

# Of one line; the download has the rest.
LONGEST_BYTES = 20_000
# Of one stretch, about what it weighs on a page; several of the heaviest lines fit in it.
MOST_WEIGHT = 300_000
SPAN_WEIGHT = 60


@dataclass(frozen=True, slots=True)
class Printed:
    """A piece of one stream, as it was read from the program."""

    stream: str
    at: datetime
    data: bytes

    @property
    def ends(self) -> int:
        return self.data.count(b"\n")

    def cut_after(self, ends: int) -> "tuple[Printed, Printed]":
        """In two, the first one with so many ends of lines."""
        place = 0
        for _ in range(ends):
            place = self.data.index(b"\n", place) + 1
        return replace(self, data=self.data[:place]), replace(self, data=self.data[place:])


@dataclass(frozen=True)
class LogLine:
    """As old as its start; one that is open has not ended and may change.

    Its looks are read when somebody wants to see them: of most lines nobody does.
    """

    number: int
    at: datetime
    stream: str
    data: bytes
    style: Style
    open: bool = False

    @cached_property
    def spans(self) -> tuple[StyledSpan, ...]:
        return read_line(self.data.decode(errors="replace"), self.style)[0]

    @property
    def weight(self) -> int:
        return len(self.data) + SPAN_WEIGHT * len(self.spans)

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)

    def shown(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "at": self.at.timestamp(),
            "stream": self.stream,
            "open": self.open,
            "spans": [span.shown() for span in self.spans],
        }


class LogCutter:
    """Cuts the pieces of a run into lines, or passes over them when nobody wants to see them."""

    def __init__(self) -> None:
        # So many lines have ended.
        self.count = 0
        self._begun: dict[str, tuple[datetime, bytearray]] = {}
        self._styles: dict[str, Style] = {}

    def feed(self, piece: Printed) -> Iterator[LogLine]:
        *ended, rest = piece.data.split(b"\n")
        for data in ended:
            at, begun = self._begun.pop(piece.stream, (piece.at, bytearray()))
            yield self._end(piece.stream, at, bytes(begun + data))
        self._begin(piece, rest)

    def skip(self, piece: Printed) -> None:
        """Leaves everything as `feed` would."""
        ended, newline, rest = piece.data.rpartition(b"\n")
        if newline:
            _, begun = self._begun.pop(piece.stream, (piece.at, bytearray()))
            self._carry(piece.stream, bytes(begun + ended))
            self.count += piece.ends
        self._begin(piece, rest)

    def open_lines(self) -> list[LogLine]:
        """As they are now, with the numbers they will have if none ends before the others."""
        return [
            self._line(self.count + place, stream, at, bytes(begun), is_open=True)
            for place, (stream, (at, begun)) in enumerate(self._begun.items())
        ]

    def rest(self) -> list[LogLine]:
        """When there is no more to come, what has begun has ended."""
        begun, self._begun = self._begun, {}
        return [self._end(stream, at, bytes(data)) for stream, (at, data) in begun.items()]

    def _begin(self, piece: Printed, data: bytes) -> None:
        if data:
            self._begun.setdefault(piece.stream, (piece.at, bytearray()))[1].extend(data)

    def _end(self, stream: str, at: datetime, data: bytes) -> LogLine:
        line = self._line(self.count, stream, at, data)
        self._carry(stream, data)
        self.count += 1
        return line

    def _line(
        self, number: int, stream: str, at: datetime, data: bytes, is_open: bool = False
    ) -> LogLine:
        style = self._styles.get(stream, Style())
        return LogLine(number, at, stream, shown_part(data), style, is_open)

    def _carry(self, stream: str, data: bytes) -> None:
        style = self._styles.get(stream, Style())
        self._styles[stream] = style_after(data.decode(errors="replace"), style)


def shown_part(data: bytes) -> bytes:
    """Of a progress bar its end, of another endless line its beginning."""
    if len(data) <= LONGEST_BYTES:
        return data
    _, drawn_anew, last = data[-LONGEST_BYTES:].partition(b"\r")
    if drawn_anew:
        return last
    left_out = len(data) - LONGEST_BYTES
    return data[:LONGEST_BYTES] + f" [... {left_out:,} bytes more in the download]".encode()


# --- a stretch of a log ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lines that follow each other, and how many there are before them."""

    lines: tuple[LogLine, ...]
    earlier: int

    @property
    def last_ended(self) -> int:
        """The number of the last line that will not change; -1: none."""
        return max((line.number for line in self.lines if not line.open), default=self.earlier - 1)


def last_lines(pieces: Iterable[Printed], most: int, *, ended: bool) -> Stretch:
    """The end of a log; `ended` when no piece will follow."""
    cutter = LogCutter()
    wanted: deque[Printed] = deque()
    ends = 0
    for piece in pieces:
        wanted.append(piece)
        ends += piece.ends
        while ends - wanted[0].ends >= most:
            ends -= wanted[0].ends
            cutter.skip(wanted.popleft())
    first = cutter.count + ends - most
    lines = [line for piece in wanted for line in fed_from(cutter, piece, first)]
    lines += cutter.rest() if ended else cutter.open_lines()
    return _up_to_the_end(lines[-most:])


def lines_before(pieces: Iterable[Printed], before: int, most: int) -> Stretch:
    """Up to `most` lines that all have ended, the last one just before the line `before`."""
    first = max(0, before - most)
    lines = takewhile(lambda line: line.number < before, lines_from(pieces, first))
    return _up_to_the_end(list(lines), first)


def lines_after(pieces: Iterable[Printed], after: int, most: int) -> Stretch:
    """Up to `most` lines that all have ended, the first one just after the line `after`."""
    first = after + 1
    return Stretch(tuple(_light(islice(lines_from(pieces, first), most))), first)


def _up_to_the_end(lines: Sequence[LogLine], first: int = 0) -> Stretch:
    """The last of them, as many as are light enough."""
    light = tuple(_light(reversed(lines)))[::-1]
    return Stretch(light, light[0].number if light else first)


def _light(lines: Iterable[LogLine]) -> Iterator[LogLine]:
    """As many as one stretch may hold, but one at least: whoever asks on must get on."""
    weight = 0
    for line in lines:
        weight += line.weight
        if weight > max(MOST_WEIGHT, line.weight):
            return
        yield line


def lines_from(pieces: Iterable[Printed], first: int) -> Iterator[LogLine]:
    cutter = LogCutter()
    for piece in pieces:
        yield from fed_from(cutter, piece, first)


def fed_from(cutter: LogCutter, piece: Printed, first: int) -> Iterator[LogLine]:
    """The lines of a piece from a number on."""
    unwanted = first - cutter.count
    if unwanted >= piece.ends:
        cutter.skip(piece)
        return
    if unwanted > 0:
        passed, piece = piece.cut_after(unwanted)
        cutter.skip(passed)
    yield from cutter.feed(piece)
