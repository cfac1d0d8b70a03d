"""Follows a run's output and a work item's runs by looking at their rows now and then."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from time import sleep
from typing import Any

from django.db.models import OuterRef, Subquery

from agents_app.cli.times import local
from agents_app.models import Run, RunOutput, WorkItem
from agents_app.output import TextDecoder

LOOK_EVERY_SECONDS = 0.25
PIECES_AT_ONCE = 500
# Not splitlines(), which also cuts at characters that no terminal takes for a line's end.
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


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

    def page(self, most: int = PIECES_AT_ONCE) -> list[Piece]:
        unread = RunOutput.objects.filter(run=self.run_id, seq__gt=self._seq)
        return [self._next(row) for row in unread.order_by("seq")[:most]]

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


def output_until_end(run_id: int) -> Iterator[Piece]:
    output = Output(run_id)
    while True:
        # Asked before reading: what a run printed is stored before or with its end.
        goes_on = Run.objects.filter(pk=run_id, slot__isnull=False).exists()
        yield from output.read()
        if not goes_on:
            break
        sleep(LOOK_EVERY_SECONDS)
    yield from output.rest()


def runs_of(work_item_id: int) -> Iterator[int]:
    """Each run of the item when it exists, retries too, until the item is settled."""
    last = 0
    while True:
        state = WorkItem.objects.values_list("state", flat=True).get(pk=work_item_id)
        run = Run.objects.filter(work_item=work_item_id, pk__gt=last).order_by("pk").first()
        if run is not None:
            last = run.pk
            yield run.pk
        elif state not in {WorkItem.State.QUEUED, WorkItem.State.ADMITTED}:
            return
        else:
            sleep(LOOK_EVERY_SECONDS)


def as_lines(pieces: Iterable[Piece], *, times: bool = False) -> Iterator[str]:
    """What a terminal gets: the time before each line, if wanted, and an end to the last one."""
    at_start = True
    for piece in pieces:
        if lines := _LINE.findall(piece.text):
            stamp = f"{local(piece.at)}  " if times else ""
            yield (stamp if at_start else "") + stamp.join(lines)
            at_start = lines[-1].endswith("\n")
    if not at_start:
        yield "\n"
