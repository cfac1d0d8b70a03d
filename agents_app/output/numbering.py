"""Numbers the lines of a run's output, and keeps what a reader needs to begin at any row; pure.

A line ends with a line feed, or with carriage returns that no line feed follows. Lines are numbered
from 0 in the order in which they end, over all streams of a run. A terminal line ends with a line
feed only: a progress bar is one terminal line, and has the number of the last line in it.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from agents_app.output.ansi import Style, style_after

DEFAULT_STYLE = Style()
_LINE_END = re.compile(rb"\r+\n?|\n")
# The parameters of a colour may be cut between two rows; longer ones are no colour.
_UNFINISHED_ESCAPE = re.compile(rb"(?:\xc2|\x1b|(?:\x1b\[|\xc2\x9b)[0-9;:]{0,100})\Z")


@dataclass(slots=True)
class StreamState:
    """What one stream has begun and not ended, by the `seq` of the rows; 0: nothing has begun."""

    # Where the terminal line began, and where the last line in it began.
    terminal_line_seq: int = 0
    line_seq: int = 0
    # A carriage return has ended a line within the terminal line.
    is_redrawn: bool = False
    # The last byte is a carriage return: the next byte decides whether it ends a line by itself.
    after_return: bool = False
    escape: bytes = b""
    # At the beginning of the terminal line, and now.
    line_style: Style = DEFAULT_STYLE
    style: Style = DEFAULT_STYLE

    def feed(self, seq: int, data: bytes) -> int:
        """Moves the state past the data of a row; returns the number of lines that ended."""
        if not data:
            return 0
        count, last_end, last_feed = self._ends(data)
        self._feed_style(data, last_feed)
        if last_feed >= 0:
            self.terminal_line_seq = seq if last_feed < len(data) else 0
            self.is_redrawn = last_end > last_feed
        else:
            self.terminal_line_seq = self.terminal_line_seq or seq
            self.is_redrawn = self.is_redrawn or last_end >= 0
        if last_end >= 0:
            self.line_seq = seq if last_end < len(data) else 0
        else:
            self.line_seq = self.line_seq or seq
        self.after_return = data.endswith(b"\r")
        return count

    def _ends(self, data: bytes) -> tuple[int, int, int]:
        """How many lines end, and the places after the last end and after the last line feed."""
        last_feed = data.rfind(b"\n") + 1 or -1
        if not self.after_return and b"\r" not in data:
            return data.count(b"\n"), last_feed, last_feed
        # As `line_ends`, but many times faster: progress bars have thousands of ends in a row.
        before = b"\r" if self.after_return else b""
        decided = (before + data).rstrip(b"\r")
        last_end = max(decided.rfind(b"\n"), decided.rfind(b"\r")) + 1
        return (
            len(_LINE_END.findall(decided)),
            last_end - len(before) if last_end else -1,
            last_feed,
        )

    def _feed_style(self, data: bytes, last_feed: int) -> None:
        if self.escape or b"\x1b" in data or b"\x9b" in data or data.endswith(b"\xc2"):
            place = max(0, last_feed)
            if last_feed >= 0:
                self.style = style_after(_text(self.escape + data[:place]), self.style)
                self.line_style, self.escape = self.style, b""
            rest = self.escape + data[place:]
            self.style = style_after(_text(rest), self.style)
            unfinished = _UNFINISHED_ESCAPE.search(rest, max(0, len(rest) - 110))
            self.escape = unfinished[0] if unfinished else b""
        elif last_feed >= 0:
            self.line_style = self.style

    @property
    def is_default(self) -> bool:
        return not self.terminal_line_seq and self.style == DEFAULT_STYLE

    def encoded(self) -> list[int | str]:
        return [
            *(self.terminal_line_seq, self.line_seq, int(self.is_redrawn), int(self.after_return)),
            *(self.escape.decode("latin-1"), _encoded(self.line_style), _encoded(self.style)),
        ]

    @classmethod
    def decoded(cls, values: list[int | str]) -> "StreamState":
        terminal_line_seq, line_seq, is_redrawn, after_return = map(int, values[:4])
        escape, line_style, style = map(str, values[4:])
        return cls(
            *(terminal_line_seq, line_seq, bool(is_redrawn), bool(after_return)),
            *(escape.encode("latin-1"), _decoded(line_style), _decoded(style)),
        )


def line_ends(data: bytes, *, after_return: bool = False) -> Iterator[int]:
    """The places after each end of a line; carriage returns at the very end are undecided.

    `after_return`: the data before this ended with a carriage return; a place of 0 is its end.
    """
    before = b"\r" if after_return else b""
    text = before + data
    for end in _LINE_END.finditer(text):
        if end.end() < len(text) or text.endswith(b"\n"):
            yield end.end() - len(before)


class Numbering:
    """The number of lines that have ended in a run, and the state of each of its streams."""

    def __init__(self, count: int = 0, carried: str = "") -> None:
        self.count = count
        states = json.loads(carried) if carried else {}
        self.streams = {int(key): StreamState.decoded(each) for key, each in states.items()}

    def feed(self, seq: int, stream: int, data: bytes) -> None:
        self.count += self.of(stream).feed(seq, data)

    def of(self, stream: int) -> StreamState:
        return self.streams.setdefault(stream, StreamState())

    @property
    def carried(self) -> str:
        """The states as text for a row; empty in the usual case that each stream begins a line."""
        states = {key: each for key, each in self.streams.items() if not each.is_default}
        if not states:
            return ""
        return json.dumps({key: each.encoded() for key, each in states.items()})


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _encoded(style: Style) -> str:
    if style == DEFAULT_STYLE:
        return ""
    return "/".join((style.color, style.background, ",".join(sorted(style.flags))))


def _decoded(text: str) -> Style:
    if not text:
        return DEFAULT_STYLE
    color, background, flags = text.split("/")
    return Style(color, background, frozenset(flags.split(",")) if flags else frozenset())
