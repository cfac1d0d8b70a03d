"""Output of runs in the database, written as a worker stores it."""

from collections.abc import Iterable
from datetime import UTC, datetime

from agents_app.models import Run, RunOutput
from agents_app.output.buffer import Segment
from agents_app.output.numbering import Numbering
from agents_app.output.transcript import insert_output

FIRST_AT = datetime(2026, 3, 2, 12, tzinfo=UTC)


def numbered(pieces: Iterable[tuple[int, bytes]], first: int = 1) -> list[Segment]:
    """Each piece as a segment of its own, a second apart."""
    numbering, segments = Numbering(), []
    for seq, (stream, data) in enumerate(pieces, first):
        when = FIRST_AT.timestamp() + (seq - 1) % 60
        segments.append(Segment(seq, stream, when, data, numbering.count, numbering.carried))
        numbering.feed(seq, stream, data)
    return segments


def store_output(run_id: int, *pieces: tuple[int, bytes]) -> None:
    """More rows of a run; all of its rows are numbered again, because tests store a few only."""
    tenant_id = Run.objects.values_list("tenant", flat=True).get(pk=run_id)
    rows = RunOutput.objects.filter(run=run_id).order_by("seq")
    stored = [(stream, bytes(data)) for stream, data in rows.values_list("stream", "data")]
    insert_output(tenant_id, run_id, numbered([*stored, *pieces])[len(stored) :])
