"""What a run has printed so far, read from its rows as text that is safe to show."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, Subquery

from agents_app.models import Run, RunOutput
from agents_app.text import TextDecoder

PIECES_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Piece:
    """What a run printed at one moment on one stream, safe to show."""

    run: int
    seq: int
    stream: str
    at: datetime
    text: str


class Output:
    """The output of one run as text, from where it was last read."""

    def __init__(self, run_id: int) -> None:
        self.run_id = run_id
        self._seq = 0
        # One each: bytes of one character may come in two pieces, with others in between.
        self._decoders = {stream: TextDecoder() for stream in RunOutput.Stream}
        self._last: dict[RunOutput.Stream, RunOutput] = {}

    @property
    def seq(self) -> int:
        """The last piece that was read."""
        return self._seq

    def read(self) -> Iterator[Piece]:
        while pieces := self.page():
            yield from pieces

    def page(self, most: int = 0) -> list[Piece]:
        unread = RunOutput.objects.filter(run=self.run_id, seq__gt=self._seq)
        return [self._next(row) for row in unread.order_by("seq")[: most or PIECES_AT_ONCE]]

    def rest(self) -> Iterator[Piece]:
        """What the decoders hold back, once the run is over."""
        for row in self._last.values():
            piece = self._piece(row, b"", final=True)
            if piece.text:
                yield piece

    def _next(self, row: RunOutput) -> Piece:
        self._seq, self._last[RunOutput.Stream(row.stream)] = row.seq, row
        return self._piece(row, bytes(row.data))

    def _piece(self, row: RunOutput, data: bytes, *, final: bool = False) -> Piece:
        stream = RunOutput.Stream(row.stream)
        text = self._decoders[stream].decode(data, final)
        return Piece(self.run_id, row.seq, stream.name.lower(), row.at, text)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: the last piece of its output, and how it ended; without a state it is gone.

    Both of one moment: what a run printed is stored before or with its end.
    """

    run_id: int
    seq: int = 0
    ended: bool = True
    state: str = ""
    exit_code: int | None = None
    error: str = ""
    finished_at: datetime | None = None


def progress_of(run_ids: Collection[int]) -> dict[int, Progress]:
    last = RunOutput.objects.filter(run=OuterRef("pk")).order_by("-seq").values("seq")[:1]
    rows: Iterable[Any] = (
        Run.objects.filter(pk__in=run_ids)
        .annotate(seq=Subquery(last))
        .values_list("pk", "seq", "slot", "state", "exit_code", "error", "finished_at")
    )
    found = {
        key: Progress(key, seq or 0, slot is None, *ending) for key, seq, slot, *ending in rows
    }
    return {run_id: found.get(run_id) or Progress(run_id) for run_id in run_ids}


def output_so_far(run_id: int) -> Iterator[Piece]:
    output = Output(run_id)
    yield from output.read()
    yield from output.rest()
