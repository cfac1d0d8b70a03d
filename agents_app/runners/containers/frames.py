"""Splits the stream in which Docker sends stdout and stderr."""

from collections.abc import Iterator

HEADER_BYTES = 8


class Frames:
    """A frame is the number of the stream, three zeros, the size and the data.

    Input may be cut anywhere. The first `read_before` bytes of each stream are skipped."""

    def __init__(self, read_before: dict[int, int] | None = None) -> None:
        self._header = bytearray()
        self._stream = 0
        self._left = 0
        self._skip = dict(read_before or {})

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        view = memoryview(data)
        while view:
            if not self._left:
                view = self._read_header(view)
                continue
            piece, view = view[: self._left], view[self._left :]
            self._left -= len(piece)
            skipped = min(len(piece), self._skip.get(self._stream, 0))
            if skipped:
                self._skip[self._stream] -= skipped
            if skipped < len(piece):
                yield self._stream, bytes(piece[skipped:])

    def _read_header(self, view: memoryview) -> memoryview:
        wanted = HEADER_BYTES - len(self._header)
        self._header += view[:wanted]
        if len(self._header) == HEADER_BYTES:
            self._stream = self._header[0]
            self._left = int.from_bytes(self._header[4:], "big")
            self._header.clear()
        return view[wanted:]
