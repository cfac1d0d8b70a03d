"""Where the lines of a log come from: the rows of a run's output, oldest first."""

from collections.abc import Iterator

from agents_app.models import RunOutput
from agents_app.output.lines import Printed

ROWS_AT_ONCE = 100
_NAMES = {stream.value: stream.name.lower() for stream in RunOutput.Stream}


def output_segments(run_id: int) -> Iterator[Printed]:
    """All of it, a few megabytes in memory at a time."""
    rows = RunOutput.objects.filter(run=run_id).order_by("seq")
    found = rows.values_list("stream", "at", "data").iterator(chunk_size=ROWS_AT_ONCE)
    yield from (Printed(_NAMES[stream], at, bytes(data)) for stream, at, data in found)


def output_segments_after(run_id: int, seq: int, most: int) -> list[tuple[int, Printed]]:
    """The next pieces, with their places."""
    rows = RunOutput.objects.filter(run=run_id, seq__gt=seq).order_by("seq")
    return [(row.seq, Printed(_NAMES[row.stream], row.at, bytes(row.data))) for row in rows[:most]]
