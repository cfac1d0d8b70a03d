"""Takes apart the stream in which the engine sends stdout and stderr together; keeps nothing."""

from collections.abc import Iterator

HEADER_BYTES = 8


class Frames:
    """A frame is its stream's number, three zeros, its size and its data; any piece may end
    anywhere. What was read before, by stream, is passed over."""

    def __init__(self, read_before: dict[int, int] | None = None) -> None:
        self._header = bytearray()
        self._stream = 0
        self._left = 0
        self._skip = dict(read_before or {})

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        view = memoryview(data)
        while view:
            if not self._left:
                view = self._begin(view)
                continue
            piece, view = view[: self._left], view[self._left :]
            self._left -= len(piece)
            skipped = min(len(piece), self._skip.get(self._stream, 0))
            if skipped:
                self._skip[self._stream] -= skipped
            if skipped < len(piece):
                yield self._stream, bytes(piece[skipped:])

    def _begin(self, view: memoryview) -> memoryview:
        wanted = HEADER_BYTES - len(self._header)
        self._header += view[:wanted]
        if len(self._header) == HEADER_BYTES:
            self._stream = self._header[0]
            self._left = int.from_bytes(self._header[4:], "big")
            self._header.clear()
        return view[wanted:]
