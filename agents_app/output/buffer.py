"""Collects the output of a run into numbered segments, within limits and byte for byte; pure."""

from collections import deque
from dataclasses import dataclass, field

from agents_app.output.numbering import Numbering

HEAD_BYTES = 10_000_000
HEAD_SEGMENTS = 20_000
TAIL_BYTES = 1_000_000
TAIL_SEGMENTS = 20_000
SEGMENT_BYTES = 64 * 1024
MERGE_SECONDS = 0.1
MARKER_STREAM = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of one stream: 1 stdout, 2 stderr, 0 texts of Drover."""

    seq: int
    stream: int
    at: float
    data: bytes
    # The numbering of lines before this segment.
    first_line: int = field(default=0, compare=False)
    carried: str = field(default="", compare=False)


class _Piece:
    """A segment that may still grow."""

    __slots__ = ("at", "data", "last_at", "stream")

    def __init__(self, stream: int, at: float) -> None:
        self.stream, self.at, self.last_at = stream, at, at
        self.data = bytearray()

    def free_bytes(self, stream: int, at: float) -> int:
        joins = stream == self.stream and at - self.last_at < MERGE_SECONDS
        return SEGMENT_BYTES - len(self.data) if joins else 0


class OutputBuffer:
    """Keeps the first 10 MB and the last 1 MB of the output; one thread feeds and takes.

    `kept_segments`, `kept_bytes` and `numbering` say what an earlier buffer of the run has kept."""

    def __init__(
        self, kept_segments: int = 0, kept_bytes: int = 0, numbering: Numbering | None = None
    ) -> None:
        self._head: list[_Piece] = []
        self._tail: deque[_Piece] = deque()
        self._head_left = max(0, HEAD_BYTES - kept_bytes)
        self._head_segments = kept_segments
        self._tail_bytes = 0
        self._seq = kept_segments
        self._numbering = numbering or Numbering()
        self.left_out_bytes = 0

    def feed(self, stream: int, data: bytes, at: float) -> None:
        view = memoryview(data)
        while view:
            piece = self._head_piece(stream, at) or self._tail_piece(stream, at)
            view = self._fill(piece, view, at)
        if self._tail:
            self._trim_tail()

    @property
    def head_is_full(self) -> bool:
        """From now on only the end of the output is kept, and `take` returns nothing."""
        return bool(self._tail)

    def take(self) -> list[Segment]:
        """The segments of the head that were not taken before."""
        pieces, self._head = self._head, []
        return [self._seal(piece) for piece in pieces]

    def finish(self) -> list[Segment]:
        """All that was not taken before: the end of the head, a marker for a gap, the tail."""
        rest = self.take()
        if self.left_out_bytes:
            rest.append(self._marker())
        rest += [self._seal(piece) for piece in self._tail]
        self._tail.clear()
        return rest

    def _head_piece(self, stream: int, at: float) -> _Piece | None:
        if self._head_left == 0 or self._tail:
            return None
        if self._head and self._head[-1].free_bytes(stream, at):
            return self._head[-1]
        if self._head_segments == HEAD_SEGMENTS:
            return None
        self._head_segments += 1
        self._head.append(_Piece(stream, at))
        return self._head[-1]

    def _tail_piece(self, stream: int, at: float) -> _Piece:
        if not (self._tail and self._tail[-1].free_bytes(stream, at)):
            self._tail.append(_Piece(stream, at))
        return self._tail[-1]

    def _fill(self, piece: _Piece, view: memoryview, at: float) -> memoryview:
        """Adds what fits and returns the rest."""
        size = min(len(view), SEGMENT_BYTES - len(piece.data))
        if self._tail:
            self._tail_bytes += size
        else:
            size = min(size, self._head_left)
            self._head_left -= size
        piece.data += view[:size]
        piece.last_at = at
        return view[size:]

    def _trim_tail(self) -> None:
        while self._tail_bytes > TAIL_BYTES or len(self._tail) > TAIL_SEGMENTS:
            first = self._tail[0]
            size = len(first.data)
            if len(self._tail) <= TAIL_SEGMENTS:
                size = min(size, self._tail_bytes - TAIL_BYTES)
            del first.data[:size]
            self._tail_bytes -= size
            self.left_out_bytes += size
            if not first.data:
                self._tail.popleft()

    def _seal(self, piece: _Piece) -> Segment:
        return self._segment(piece.stream, piece.at, bytes(piece.data))

    def _marker(self) -> Segment:
        text = f"\n[... {_size(self.left_out_bytes)} left out ...]\n"
        return self._segment(MARKER_STREAM, self._tail[0].at, text.encode())

    def _segment(self, stream: int, at: float, data: bytes) -> Segment:
        self._seq += 1
        count, carried = self._numbering.count, self._numbering.carried
        self._numbering.feed(self._seq, stream, data)
        return Segment(self._seq, stream, at, data, count, carried)


def _size(count: int) -> str:
    for unit, name in ((1_000_000, "MB"), (1_000, "kB")):
        if count >= unit:
            return f"{count // unit} {name}"
    return f"{count} bytes"
