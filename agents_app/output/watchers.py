"""Shows the lines of stdout to watchers while a run prints them, up to a length; pure."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from agents_app.runners import OutputSink
from agents_app.text import as_text

STDOUT = 1
LONGEST_LINE = 2**20


class ProgramOutputEnd:
    """A sink that passes all output on and keeps the last bytes of it."""

    def __init__(self, longest_bytes: int) -> None:
        self._longest = longest_bytes
        self._kept = bytearray()
        self._sink: OutputSink | None = None

    def before(self, sink: OutputSink) -> OutputSink:
        self._sink = sink
        return self

    def feed(self, stream: int, data: bytes, at: float) -> None:
        self._kept += data[-self._longest :]
        # Not for every piece: removing the beginning moves the rest.
        if len(self._kept) > 2 * self._longest:
            del self._kept[: -self._longest]
        if self._sink is not None:
            self._sink.feed(stream, data, at)

    def flush(self) -> None:
        if self._sink is not None:
            self._sink.flush()

    @property
    def text(self) -> str:
        return as_text(bytes(self._kept[-self._longest :]))


class LineWatcher(Protocol):
    """Must not raise, and must not delay the program."""

    def line(self, text: bytes, at: float) -> None:
        """Called with each line, without its end; lines longer than LONGEST_LINE are left out."""
        ...


class LineSplitter:
    """Cuts a stream of bytes into lines and calls a function with each."""

    def __init__(self, call: Callable[[bytes, float], None]) -> None:
        self._call = call
        self._begun = bytearray()
        self._too_long = False

    def feed(self, data: bytes, at: float) -> None:
        first, *rest = data.split(b"\n")
        self._add(first)
        for piece in rest:
            self._end(at)
            self._add(piece)

    def finish(self, at: float) -> None:
        if self._begun:
            self._end(at)

    def _add(self, piece: bytes) -> None:
        if self._too_long or len(self._begun) + len(piece) > LONGEST_LINE:
            self._too_long = True
            self._begun.clear()
        else:
            self._begun += piece

    def _end(self, at: float) -> None:
        if not self._too_long:
            self._call(bytes(self._begun).removesuffix(b"\r"), at)
        self._begun.clear()
        self._too_long = False


class WatchedSink:
    """A sink that passes all output on and shows the lines of stdout to watchers."""

    def __init__(self, sink: OutputSink, watchers: Sequence[LineWatcher]) -> None:
        self._sink = sink
        self._watchers = watchers
        self._lines = LineSplitter(self._show)

    def feed(self, stream: int, data: bytes, at: float) -> None:
        self._sink.feed(stream, data, at)
        if stream == STDOUT and self._watchers:
            self._lines.feed(data, at)

    def flush(self) -> None:
        self._sink.flush()

    def __enter__(self) -> "WatchedSink":
        return self

    def __exit__(self, *_: object) -> None:
        """The program has ended: its last line may lack an end."""
        self._lines.finish(time.time())

    def _show(self, text: bytes, at: float) -> None:
        for watcher in self._watchers:
            watcher.line(text, at)
