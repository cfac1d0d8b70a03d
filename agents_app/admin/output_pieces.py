"""A run's output as pieces for a page: decoded, split at line starts, and never markup."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models.functions import Length

from agents_app.models import Run, RunOutput
from agents_app.output import TextDecoder

# A page shows the end of a long output; the whole of it is a download.
SHOWN_BYTES = 256_000
# Enough earlier segments to know what was split where a page left off.
PRIMED_SEGMENTS = 8
STREAMS = {0: "note", 1: "out", 2: "err"}
_LINES = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A line or a part of one; `at` is set where a line begins."""

    stream: str
    text: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """A stretch of output, and where the next one begins."""

    pieces: tuple[Piece, ...]
    last_seq: int
    left_out: bool = False


def output_after(run: Run, seq: int) -> Shown:
    """What was stored after `seq`; with 0 the end of everything.

    The run must have been read before: if it had ended then, all its output is there now.
    """
    first = seq + 1 if seq else _first_shown(run)
    segments = list(run.output.filter(seq__gte=first - PRIMED_SEGMENTS).order_by("seq"))
    last_seq = segments[-1].seq if segments else seq
    shown = pieces(segments, first, final=run.slot is None)
    return Shown(tuple(shown), last_seq, left_out=not seq and first > 1)


def whole_text(run: Run) -> str:
    segments = list(run.output.order_by("seq"))
    return "".join(piece.text for piece in pieces(segments, 0, final=True))


def pieces(segments: list[RunOutput], first: int, *, final: bool) -> Iterator[Piece]:
    """Of the segments from number `first` on; those before only tell what was split."""
    decoders = {stream: TextDecoder() for stream in STREAMS}
    stream, line_begins = -1, True
    for segment in segments:
        text = decoders[segment.stream].decode(bytes(segment.data))
        if not text:
            continue
        if stream != segment.stream and not line_begins:
            text = "\n" + text
        if segment.seq >= first:
            yield from _split(segment, text, line_begins)
        stream, line_begins = segment.stream, text.endswith("\n")
    if final:
        rests = {name: decoders[stream].decode(b"", final=True) for stream, name in STREAMS.items()}
        yield from (Piece(name, rest) for name, rest in rests.items() if rest)


def _split(segment: RunOutput, text: str, line_begins: bool) -> Iterator[Piece]:
    for line in _LINES.findall(text):
        yield Piece(STREAMS[segment.stream], line, segment.at if line_begins else None)
        line_begins = True


def _first_shown(run: Run) -> int:
    sizes = run.output.annotate(size=Length("data")).order_by("-seq").values_list("seq", "size")
    shown, first = 0, 1
    for seq, size in sizes.iterator():
        first, shown = seq, shown + size
        if shown >= SHOWN_BYTES:
            break
    return first
