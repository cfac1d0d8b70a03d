"""Reads the stored output of runs: as numbered lines from any line on, as text, and by excerpts.

Opening a log at a line reads the numbers of about 15 rows and the rows that hold the line.
"""

from collections.abc import Iterator

from django.db.models import Max, QuerySet
from django.db.models.functions import Length

from agents_app.models import RunOutput
from agents_app.output.lines import (
    LONGEST_BYTES,
    MOST_WEIGHT,
    BegunLine,
    Excerpt,
    LineCutter,
    LogLine,
    OutputRow,
    limited,
)
from agents_app.output.numbering import StreamState, line_ends
from agents_app.text import TextDecoder

# Up to 64 kB each.
ROWS_AT_ONCE = 32
# Rows whose lengths are read to decide how many rows an excerpt needs.
ROWS_MEASURED = 100
# Of an excerpt that ends with a given line, unless the lines in it need more.
MOST_ROWS = 1000
_COLUMNS = ("seq", "stream", "at", "data", "first_line", "carried")


# --- rows -----------------------------------------------------------------------------------


def _rows(run_id: int, **wanted: int) -> "QuerySet[RunOutput]":
    return RunOutput.objects.filter(run=run_id, **wanted).order_by("seq")


def _output_rows(rows: "QuerySet[RunOutput]") -> list[OutputRow]:
    return [
        OutputRow(seq, stream, at, bytes(data), first_line, carried)
        for seq, stream, at, data, first_line, carried in rows.values_list(*_COLUMNS)
    ]


def row_of_line(run_id: int, number: int) -> int:
    """The `seq` of the row in which a line ends, of the last row if the line has not ended yet."""
    low, high = 1, _rows(run_id).aggregate(last=Max("seq"))["last"] or 1
    while low < high and number >= 0:
        middle = (low + high + 1) // 2
        first_line = _rows(run_id, seq__gte=middle).values_list("first_line", flat=True)[:1]
        if first_line[0] <= number:
            low = middle
        else:
            high = middle - 1
    return low


class StoredLines:
    """Reads the beginnings of unfinished lines of a run for a LineCutter."""

    def __init__(self, run_id: int, *, terminal: bool) -> None:
        self._run_id = run_id
        self._terminal = terminal

    def load(self, stream: int, state: StreamState, before_seq: int) -> BegunLine:
        if not self._terminal:
            return self._load_from(stream, state.line_seq, before_seq)
        first_seq, data = state.terminal_line_seq, b""
        while before_seq > first_seq and len(data) <= LONGEST_BYTES:
            rows = _rows(self._run_id, stream=stream, seq__gte=first_seq, seq__lt=before_seq)
            found = list(rows.reverse().values_list("seq", "data")[:ROWS_AT_ONCE])
            data = b"".join(bytes(piece) for _, piece in reversed(found)) + data
            before_seq = found[-1][0]
        at = _rows(self._run_id, seq=first_seq).values_list("at", flat=True).get()
        is_cut = before_seq > first_seq
        return BegunLine(at, bytearray(data if is_cut else data[data.rfind(b"\n") + 1 :]), is_cut)

    def load_whole(self, stream: int, first_seq: int, last_seq: int) -> bytes:
        begun = self._load_from(stream, first_seq, last_seq + 1)
        return bytes(begun.data).partition(b"\n")[0]

    def _load_from(self, stream: int, first_seq: int, before_seq: int) -> BegunLine:
        rows = _rows(self._run_id, stream=stream, seq__gte=first_seq, seq__lt=before_seq)
        (at, first), *others = rows.values_list("at", "data")
        begun = bytearray(bytes(first)[self._beginning(bytes(first)) :])
        return BegunLine(at, begun + b"".join(bytes(piece) for _, piece in others))

    def _beginning(self, data: bytes) -> int:
        """Where the line begins that does not end in the row of this data."""
        if self._terminal:
            return data.rfind(b"\n") + 1
        return max(line_ends(data), default=0)


# --- lines ----------------------------------------------------------------------------------


class LogReader:
    """The lines of one run from line `first` on, also while the run prints them.

    Plain lines end with line feeds or carriage returns. `terminal` lines end with line feeds only,
    have colours, and are also read while they are open. Nothing is read before the first page.
    """

    def __init__(self, run_id: int, first: int = 0, *, terminal: bool = False) -> None:
        self._run_id = run_id
        self._first = first
        self._terminal = terminal
        self._cutter = LineCutter(StoredLines(run_id, terminal=terminal), terminal=terminal)
        # The last row that was read, and whether no row followed.
        self.seq = 0
        self.is_at_end = False

    def page(self, rows: int = ROWS_AT_ONCE) -> list[LogLine]:
        """The lines that end in the next rows."""
        if not self.seq and self._first:
            self.seq = row_of_line(self._run_id, self._first) - 1
        found = _output_rows(_rows(self._run_id, seq__gt=self.seq)[:rows])
        self.is_at_end = len(found) < rows
        self.seq = found[-1].seq if found else self.seq
        lines = (line for row in found for line in self._cutter.feed(row))
        return [line for line in lines if line.number >= self._first]

    def read(self) -> Iterator[LogLine]:
        """All lines that have ended and were not read before."""
        yield from self.page()
        while not self.is_at_end:
            yield from self.page()

    def unfinished(self, *, ended: bool) -> list[LogLine]:
        """The lines that have begun; `ended` when no row will follow, so that they have ended."""
        lines = self._cutter.unfinished(ended=ended)
        return [line for line in lines if line.number >= self._first]


def stored_lines(run_id: int, *, ended: bool) -> Iterator[LogLine]:
    """All plain lines of a run; the last ones are open unless the run has ended."""
    reader = LogReader(run_id)
    yield from reader.read()
    yield from reader.unfinished(ended=ended)


# --- excerpts -------------------------------------------------------------------------------


def last_lines(run_id: int, most: int, *, ended: bool) -> Excerpt:
    """Up to `most` terminal lines at the end of a log; `ended` when no row will follow."""
    return _lines_up_to(run_id, None, most, ended=ended)


def lines_before(run_id: int, before: int, most: int) -> Excerpt:
    """Up to `most` terminal lines that have ended, the last one just before the line `before`."""
    if before <= 0:
        return Excerpt((), 0)
    return _lines_up_to(run_id, row_of_line(run_id, before - 1), most, before=before)


def lines_after(run_id: int, after: int, most: int, *, ended: bool) -> Excerpt:
    """Up to `most` terminal lines after the line `after`; at the end of the log also open ones."""
    reader, lines = LogReader(run_id, after + 1, terminal=True), list[LogLine]()
    while not (reader.is_at_end or len(lines) > most or _weigh_much(lines)):
        lines += reader.page(rows=8)
    if reader.is_at_end:
        lines += reader.unfinished(ended=ended)
    shown = tuple(limited(lines[:most]))
    return Excerpt(shown, after + 1, is_last=reader.is_at_end and len(shown) == len(lines))


def _weigh_much(lines: list[LogLine]) -> bool:
    return sum(len(line.data) for line in lines) > MOST_WEIGHT


def _lines_up_to(
    run_id: int, last_seq: int | None, most: int, *, before: int | None = None, ended: bool = False
) -> Excerpt:
    """The last terminal lines in the rows up to `last_seq`, or of these the lines before a number.

    Two queries, unless the rows hold fewer terminal lines than line numbers: a progress bar has
    many numbers. Then four times as many rows are read with each further step.
    """
    rows: list[OutputRow] = []
    until = None if last_seq is None else last_seq + 1
    share = 1
    while True:
        first_seq = _first_row(run_id, until, share * most, share * MOST_WEIGHT)
        found = _rows(run_id, seq__gte=first_seq)
        rows[:0] = _output_rows(found if until is None else found.filter(seq__lt=until))
        cutter = LineCutter(StoredLines(run_id, terminal=True), terminal=True)
        lines = [line for row in rows for line in cutter.feed(row)]
        if before is None:
            lines += cutter.unfinished(ended=ended)
        else:
            lines = [line for line in lines if line.number < before]
        is_enough = len(lines) >= most or len(rows) >= MOST_ROWS or _weigh_much(lines)
        if first_seq == 1 or (lines and is_enough):
            break
        until = first_seq
        share *= 4
    shown = tuple(limited(reversed(lines[-most:])))[::-1]
    is_first = first_seq == 1 and len(shown) == len(lines)
    return Excerpt(shown, 0 if is_first else shown[0].number, is_last=before is None)


def _first_row(run_id: int, until: int | None, lines: int, weight: int) -> int:
    """The `seq` of the first of the rows before `until` that hold as many lines or as many bytes.

    Reads the numbers and lengths of rows, not their data. `until` None: up to the last row.
    """
    rows = _rows(run_id) if until is None else _rows(run_id, seq__lt=until)
    columns = ("seq", "first_line", Length("data"))
    newest: list[tuple[int, int, int]] = list(rows.reverse().values_list(*columns)[:ROWS_MEASURED])
    for seq, first_line, length in newest:
        weight -= length
        if newest[0][1] - first_line >= lines or weight <= 0:
            return seq
    return newest[-1][0] if newest else 1


# --- text -----------------------------------------------------------------------------------


class TextReader:
    """The output of one run as text that is safe for a terminal, in the order it was printed."""

    def __init__(self, run_id: int) -> None:
        self._run_id = run_id
        self._seq = 0
        # One for each stream: the bytes of a character may be in two rows, with others in between.
        self._decoders = {stream: TextDecoder() for stream in RunOutput.Stream}
        self._at_line_start = True

    def read(self) -> Iterator[str]:
        """All that was stored and not read before."""
        while rows := list(_rows(self._run_id, seq__gt=self._seq)[:ROWS_AT_ONCE]):
            self._seq = rows[-1].seq
            for row in rows:
                stream = RunOutput.Stream(row.stream)
                yield from self._text(self._decoders[stream].decode(bytes(row.data)))

    def finish(self) -> Iterator[str]:
        """What the decoders hold back, and an end of the last line."""
        for decoder in self._decoders.values():
            yield from self._text(decoder.decode(b"", final=True))
        if not self._at_line_start:
            yield "\n"

    def _text(self, text: str) -> Iterator[str]:
        if text:
            self._at_line_start = text.endswith("\n")
            yield text


def whole_text(run_id: int) -> str:
    reader = TextReader(run_id)
    return "".join([*reader.read(), *reader.finish()])
