"""Cuts rows of a run's output into numbered lines, plain or as a terminal shows them; pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol

from agents_app.output.ansi import Style, StyledSpan, read_line, style_after
from agents_app.output.numbering import Numbering, StreamState, line_ends
from agents_app.text import as_text

# Of a terminal line; the download has the rest.
LONGEST_BYTES = 20_000
# Of one excerpt, about its size on a page; several of the heaviest lines fit in it.
MOST_WEIGHT = 300_000
SPAN_WEIGHT = 60
STREAM_NAMES = {0: "marker", 1: "stdout", 2: "stderr"}


@dataclass(frozen=True, slots=True)
class OutputRow:
    """A stored piece of output; `first_line` and `carried` are the numbering before its data."""

    seq: int
    stream: int
    at: datetime
    data: bytes
    first_line: int = 0
    carried: str = ""


@dataclass(frozen=True)
class LogLine:
    """A line with the time of its first byte; an open line has not ended and may change.

    Text and spans are computed on demand: most lines that are cut are not shown.
    """

    number: int
    at: datetime
    stream: str
    data: bytes
    style: Style = field(default_factory=Style)
    open: bool = False

    @cached_property
    def text(self) -> str:
        """Valid text without control characters."""
        return as_text(self.data)

    @cached_property
    def spans(self) -> tuple[StyledSpan, ...]:
        return read_line(self.data.decode(errors="replace"), self.style)[0]

    @property
    def weight(self) -> int:
        return len(self.data) + SPAN_WEIGHT * len(self.spans)

    def as_plain(self) -> dict[str, Any]:
        place = {"number": self.number, "at": self.at.timestamp(), "stream": self.stream}
        return {**place, "text": self.text}

    def as_styled(self) -> dict[str, Any]:
        place = {"number": self.number, "at": self.at.timestamp(), "stream": self.stream}
        return {**place, "open": self.open, "spans": [span.shown() for span in self.spans]}


@dataclass(slots=True)
class BegunLine:
    """The bytes of a line that has not ended; `is_cut`: its beginning is stored, but not here."""

    at: datetime
    data: bytearray
    is_cut: bool = False


class BegunLines(Protocol):
    """Reads what was stored before the rows that a cutter is fed."""

    def load(self, stream: int, state: StreamState, before_seq: int) -> BegunLine:
        """What the stream has begun before a row, or only the end of a long terminal line."""
        ...

    def load_whole(self, stream: int, first_seq: int, last_seq: int) -> bytes:
        """All bytes of a terminal line that begins in one row, to the end of another."""
        ...


class LineCutter:
    """Cuts rows that follow each other into lines, beginning with any row.

    `terminal`: carriage returns do not end a line. What a stream had begun before the first row is
    loaded when a row or the end of the output needs it.
    """

    def __init__(self, stored: BegunLines, *, terminal: bool) -> None:
        self.numbering = Numbering()
        self._stored = stored
        self._terminal = terminal
        self._begun: dict[int, BegunLine] = {}
        self._unloaded: set[int] = set()
        self._first_seq = self._last_seq = 0

    def feed(self, row: OutputRow) -> Iterator[LogLine]:
        self._begin(row)
        state = self.numbering.of(row.stream)
        number, place, style = self.numbering.count, 0, state.line_style
        now, escape = state.style, state.escape
        for end in line_ends(row.data, after_return=state.after_return):
            if not self._terminal or row.data[max(0, end - 1) : end] == b"\n":
                begun = self._extended(row, row.data[place:end])
                del self._begun[row.stream]
                yield self._line(number, row.stream, begun, style)
                printed = (escape + row.data[place:end]).decode(errors="replace")
                style = now = style_after(printed, now)
                escape, place = b"", end
            number += 1
        if place < len(row.data):
            self._extended(row, row.data[place:])
        self.numbering.feed(row.seq, row.stream, row.data)

    def unfinished(self, *, ended: bool) -> list[LogLine]:
        """What has begun, with the numbers of the case that none of the lines ends before another.

        `ended`: no row will follow. What has no text, like a reset of colours, is no line.
        """
        for stream in sorted(self._unloaded):
            self._load(stream)
        in_order = sorted(self._begun, key=lambda stream: self.numbering.of(stream).line_seq)
        streams = [stream for stream in in_order if self._is_line(stream)]
        return [
            self._line(number, stream, self._begun[stream], is_open=not ended)
            for number, stream in enumerate(streams, self.numbering.count)
        ]

    def _begin(self, row: OutputRow) -> None:
        if not self._first_seq:
            self._first_seq = row.seq
            self.numbering = Numbering(row.first_line, row.carried)
            begun = self.numbering.streams.items()
            self._unloaded = {stream for stream, state in begun if state.terminal_line_seq}
        self._last_seq = row.seq
        if row.stream in self._unloaded:
            self._load(row.stream)

    def _load(self, stream: int) -> None:
        self._unloaded.discard(stream)
        state = self.numbering.of(stream)
        self._begun[stream] = self._stored.load(stream, state, self._first_seq)

    def _extended(self, row: OutputRow, data: bytes) -> BegunLine:
        begun = self._begun.setdefault(row.stream, BegunLine(row.at, bytearray()))
        begun.data += data
        return begun

    def _is_line(self, stream: int) -> bool:
        redrawn = self.numbering.of(stream).is_redrawn
        return redrawn or as_text(bytes(self._begun[stream].data)) != ""

    def _line(
        self,
        number: int,
        stream: int,
        begun: BegunLine,
        style: Style | None = None,
        is_open: bool = False,
    ) -> LogLine:
        state = self.numbering.of(stream)
        data = bytes(begun.data)
        if not self._terminal:
            data = data.rstrip(b"\r\n")
        else:
            if begun.is_cut and b"\r" not in data[-LONGEST_BYTES:]:
                first = state.terminal_line_seq
                data = self._stored.load_whole(stream, first, self._last_seq)
            data = shown_part(data.removesuffix(b"\n"))
        style = state.line_style if style is None else style
        return LogLine(number, begun.at, STREAM_NAMES[stream], data, style, is_open)


def shown_part(data: bytes) -> bytes:
    """Of a long progress bar its end, of another long line its beginning."""
    if len(data) <= LONGEST_BYTES:
        return data
    _, drawn_again, last = data[-LONGEST_BYTES:].partition(b"\r")
    if drawn_again:
        return last
    left_out = len(data) - LONGEST_BYTES
    return data[:LONGEST_BYTES] + f" [... {left_out:,} bytes more in the download]".encode()


# --- excerpts -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Terminal lines that follow each other.

    `earlier`: the number of the first line, 0 if no line is before it; `is_last`: none follows.
    """

    lines: tuple[LogLine, ...]
    earlier: int
    is_last: bool = False

    @property
    def last_ended(self) -> int:
        """The number of the last line that will not change; -1: none."""
        return max((line.number for line in self.lines if not line.open), default=self.earlier - 1)


def limited(lines: Iterable[LogLine]) -> Iterator[LogLine]:
    """As many lines as one excerpt may hold, but at least one, so that every step gets on."""
    weight = 0
    for line in lines:
        weight += line.weight
        if weight > max(MOST_WEIGHT, line.weight):
            return
        yield line
