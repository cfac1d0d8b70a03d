"""Stores the output of a run: segments during the run, the rest with its end."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import structlog
from django.db import DatabaseError, connection

from agents_app.database import execute, fetch_one, in_transaction, to_database_time
from agents_app.output.buffer import MARKER_STREAM, OutputBuffer, Segment
from agents_app.output.numbering import Numbering
from agents_app.runners import OutputSink

log = structlog.get_logger("drover.transcript")
_INSERT = (
    "INSERT INTO drover_run_output "
    "(tenant_id, run_id, seq, stream, at, data, first_line, carried) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
)
# A worker that has lost the run to another worker must not add output.
_OWNED = "SELECT 1 FROM drover_run WHERE id = %s AND worker_id = %s AND state = 'running'"
_PRINTED = (
    "UPDATE drover_run SET printed_at = %s WHERE id = %s AND worker_id = %s AND slot IS NOT NULL"
)
PRINTED_AT_SECONDS = 5.0
_STORED = (
    "SELECT stream, length(data), CASE WHEN stream = 0 THEN data END FROM drover_run_output "
    "WHERE run_id = %s ORDER BY seq"
)
_LAST = (
    "SELECT seq, stream, data, first_line, carried FROM drover_run_output "
    "WHERE run_id = %s ORDER BY seq DESC LIMIT 1"
)
_PRE_HOOKS_DONE = b"[hooks.pre: done]\n"


class Transcript:
    """The output sink of one run; errors of the database are never raised into the runner."""

    def __init__(self, tenant_id: int, run_id: int, worker_id: int) -> None:
        self.tenant_id = tenant_id
        self.run_id = run_id
        self.worker_id = worker_id
        self.buffer = OutputBuffer()
        self.total_bytes = 0
        self._unstored: list[Segment] = []
        self._printed_at = self._printed_at_stored = 0.0

    def resume(self) -> dict[int, int]:
        """Continues after the rows that a dead worker has stored.

        Returns how many bytes of each stream are from the program, without those from hooks
        before it, which are not in the log of a container."""
        segments, stored_bytes = 0, dict[int, int]()
        for stream, size, remark in execute(_STORED, [self.run_id]).fetchall():
            segments += 1
            self.total_bytes += size
            stored_bytes[stream] = stored_bytes.get(stream, 0) + size
            if stream == MARKER_STREAM and bytes(remark).endswith(_PRE_HOOKS_DONE):
                stored_bytes.clear()
        self.buffer = OutputBuffer(segments, self.total_bytes, self._stored_numbering())
        return stored_bytes

    def _stored_numbering(self) -> Numbering:
        """The numbering of lines after the last stored row."""
        if (last := fetch_one(_LAST, [self.run_id])) is None:
            return Numbering()
        seq, stream, data, first_line, carried = last
        numbering = Numbering(first_line, carried)
        numbering.feed(seq, stream, bytes(data))
        return numbering

    def feed(self, stream: int, data: bytes, at: float) -> None:
        self.total_bytes += len(data)
        self._printed_at = at
        self.buffer.feed(stream, data, at)

    def remark(self, text: str, at: float) -> None:
        """Adds a text of Drover to the output of the program."""
        self.buffer.feed(MARKER_STREAM, text.encode(errors="replace"), at)

    def flush(self) -> None:
        self._unstored += self.buffer.take()
        try:
            if self._unstored:
                in_transaction(self.store_rest)
                self.drop_unstored()
            elif self.buffer.head_is_full:
                self._store_printed_at()
        except DatabaseError as error:
            # Kept for the next flush; the limits of a run's output also limit this memory.
            log.warning("output.not_stored", run_id=self.run_id, error=str(error))

    def _store_printed_at(self) -> None:
        """No output is stored until the run ends, so this time alone shows that the run prints."""
        if self._printed_at - self._printed_at_stored >= PRINTED_AT_SECONDS:
            at = to_database_time(datetime.fromtimestamp(self._printed_at, UTC))
            in_transaction(partial(execute, _PRINTED, [at, self.run_id, self.worker_id]))
            self._printed_at_stored = self._printed_at

    def close(self) -> None:
        """Ends the output; `store_rest` stores the rest in the transaction that ends the run."""
        self._unstored += self.buffer.finish()

    @property
    def is_stored(self) -> bool:
        return not self._unstored

    def drop_unstored(self) -> None:
        self._unstored = []

    def store_rest(self) -> None:
        """Stores what is left, if the run still belongs to this worker; needs a transaction."""
        if self._unstored and fetch_one(_OWNED, [self.run_id, self.worker_id]):
            insert_output(self.tenant_id, self.run_id, self._unstored)


def insert_output(tenant_id: int, run_id: int, segments: Sequence[Segment]) -> None:
    rows = [
        [
            tenant_id,
            run_id,
            s.seq,
            s.stream,
            to_database_time(datetime.fromtimestamp(s.at, UTC)),
            s.data,
            s.first_line,
            s.carried,
        ]
        for s in segments
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_INSERT, rows)


class UnstoredOutputSink:
    """A sink for output that is read again from its beginning: skips the bytes stored before."""

    def __init__(self, sink: OutputSink, stored_bytes: Mapping[int, int]) -> None:
        self._sink = sink
        self._stored = dict(stored_bytes)

    def feed(self, stream: int, data: bytes, at: float) -> None:
        known = min(len(data), self._stored.get(stream, 0))
        if known:
            self._stored[stream] -= known
        if known < len(data):
            self._sink.feed(stream, data[known:], at)

    def flush(self) -> None:
        self._sink.flush()
