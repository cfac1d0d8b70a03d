"""A log that is read from any line on has the same lines as a log that is read as a whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from agents_app.models import Run, RunOutput
from agents_app.output.ansi import Style, read_line, style_after
from agents_app.output.lines import LONGEST_BYTES, STREAM_NAMES, LogLine, shown_part
from agents_app.output.numbering import Numbering
from agents_app.output.reader import (
    ROWS_AT_ONCE,
    LogReader,
    last_lines,
    lines_after,
    lines_before,
    stored_lines,
)
from agents_app.output.transcript import Transcript
from agents_app.text import as_text
from tests.agents_app.fleet import Fleet
from tests.agents_app.output.stored import FIRST_AT, store_output

BITS = [
    *(b"a", b"bc", b"\n", b"\n", b"\r", b"\r\n", b"\x1b[31m", b"\x1b[0m", b"\x1b[1", b";4m"),
    *(b"\x1b", b"[32m", b"\xe2\x82", b"\xac", b"\xff", b"\x1b[K", b"\xc2", b"\x9b7m", b"x" * 30),
]
DATA = st.lists(st.sampled_from(BITS), min_size=1, max_size=6).map(b"".join)
PIECES = st.lists(st.tuples(st.sampled_from([0, 1, 1, 2]), DATA), max_size=14)
Pieces = list[tuple[int, bytes]]


@dataclass
class Begun:
    at: float
    data: bytes = b""
    redrawn: bool = False


def read_as_a_whole(pieces: Pieces, *, terminal: bool, ended: bool) -> list[tuple[Any, ...]]:
    """Byte by byte, from the first one on: number, second, stream, spans or text, open."""
    begun: dict[int, Begun] = {}
    styles = dict.fromkeys(STREAM_NAMES, Style())
    lines: list[tuple[Any, ...]] = []
    count = 0

    def line(number: int, stream: int, is_open: bool = False) -> tuple[Any, ...]:
        of = begun[stream]
        if terminal:
            data = shown_part(of.data.removesuffix(b"\n")).decode(errors="replace")
            shown: Any = read_line(data, styles[stream])[0]
        else:
            shown = as_text(of.data.rstrip(b"\r\n"))
        return number, of.at, STREAM_NAMES[stream], shown, is_open

    def end(stream: int, byte: bytes) -> None:
        nonlocal count
        if terminal and byte == b"\r":
            begun[stream].redrawn = True
        else:
            lines.append(line(count, stream))
            text = begun.pop(stream).data.decode(errors="replace")
            styles[stream] = style_after(text, styles[stream])
        count += 1

    for second, (stream, data) in enumerate(pieces):
        for byte in (data[n : n + 1] for n in range(len(data))):
            redrawn = False
            if stream in begun and begun[stream].data.endswith(b"\r") and byte not in b"\r\n":
                redrawn = True
                end(stream, b"\r")
            begun.setdefault(stream, Begun(second, redrawn=redrawn and not terminal))
            begun[stream].data += byte
            if byte == b"\n":
                end(stream, byte)
    order = sorted(begun, key=lambda stream: last_beginning(pieces, stream))
    seen = [stream for stream in order if begun[stream].redrawn or as_text(begun[stream].data)]
    return lines + [line(n, stream, not ended) for n, stream in enumerate(seen, count)]


def last_beginning(pieces: Pieces, stream: int) -> int:
    """The piece in which the last line of a stream begins."""
    numbering = Numbering()
    for seq, (of, data) in enumerate(pieces, 1):
        numbering.feed(seq, of, data)
    return numbering.of(stream).line_seq


def facts(lines: list[LogLine] | tuple[LogLine, ...], *, terminal: bool) -> list[tuple[Any, ...]]:
    return [
        (
            line.number,
            (line.at.minute * 60 + line.at.second) % 60,
            line.stream,
            line.spans if terminal else line.text,
            line.open,
        )
        for line in lines
    ]


@pytest.fixture
def run_id(fleet: Fleet) -> int:
    return fleet.start(fleet.enqueue(fleet.agent())).run_id


@contextmanager
def stored(run_id: int, pieces: Pieces) -> Iterator[None]:
    RunOutput.objects.filter(run=run_id).delete()
    store_output(run_id, *pieces)
    yield


each_example = settings(
    max_examples=25,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("ended", [False, True])
@each_example
@given(pieces=PIECES)
@example([(1, b"10%\r20%\r"), (2, b"x\n"), (1, b"30%\n")])
@example([(1, b"10%\r"), (1, b"\n"), (1, b"\x1b[3"), (1, b"1mred\n"), (1, b"\x1b[0m")])
def test_a_log_read_from_any_line_has_the_lines_of_the_whole(
    run_id: int, terminal: bool, ended: bool, pieces: Pieces
):
    whole = read_as_a_whole(pieces, terminal=terminal, ended=ended)
    with stored(run_id, pieces):
        numbers = {
            0,
            *(line[0] for line in whole),
            len(whole) // 2,
            whole[-1][0] + 1 if whole else 1,
        }
        for first in sorted(numbers)[:: max(1, len(numbers) // 5)]:
            reader = LogReader(run_id, first, terminal=terminal)
            lines = [*reader.read(), *reader.unfinished(ended=ended)]
            expected = [line for line in whole if line[0] >= first]
            assert facts(lines, terminal=terminal) == expected


@each_example
# At least 3: an unfinished line of each stream is part of the end of a log only.
@given(pieces=PIECES, most=st.integers(3, 6), ended=st.booleans())
def test_steps_back_from_the_end_show_every_line_once(
    run_id: int, pieces: Pieces, most: int, ended: bool
):
    whole = read_as_a_whole(pieces, terminal=True, ended=ended)
    with stored(run_id, pieces):
        excerpt = last_lines(run_id, most, ended=ended)
        assert facts(excerpt.lines, terminal=True) == whole[-most:]
        shown = list(excerpt.lines)
        while excerpt.earlier:
            excerpt = lines_before(run_id, excerpt.earlier, most)
            shown[:0] = excerpt.lines
    assert facts(shown, terminal=True) == whole


@each_example
@given(pieces=PIECES, most=st.integers(1, 6), ended=st.booleans())
def test_steps_forward_show_every_line_once_and_know_the_last(
    run_id: int, pieces: Pieces, most: int, ended: bool
):
    whole = read_as_a_whole(pieces, terminal=True, ended=ended)
    shown, is_last = list[LogLine](), False
    with stored(run_id, pieces):
        while not is_last:
            last_number = shown[-1].number if shown else -1
            excerpt = lines_after(run_id, last_number, most, ended=ended)
            assert excerpt.lines or excerpt.is_last
            shown, is_last = [*shown, *excerpt.lines], excerpt.is_last
    assert facts(shown, terminal=True) == whole


@each_example
@given(pieces=PIECES, cut=st.integers(0, 14))
def test_a_reader_that_waits_for_rows_reads_the_same_lines(run_id: int, pieces: Pieces, cut: int):
    whole = read_as_a_whole(pieces, terminal=False, ended=True)
    with stored(run_id, pieces[:cut]):
        reader = LogReader(run_id)
        lines = list(reader.read())
        store_output(run_id, *pieces[cut:])
        lines += [*reader.read(), *reader.unfinished(ended=True)]
    assert facts(lines, terminal=False) == whole


def test_a_transcript_that_another_worker_resumes_goes_on_with_the_numbers(fleet: Fleet):
    job = fleet.start(fleet.enqueue(fleet.agent()))
    worker_id = Run.objects.values_list("worker", flat=True).get(pk=job.run_id)
    pieces = [(1, b"one\ntw"), (2, b"10%\r20"), (1, b"o\nthr"), (2, b"%\r"), (1, b"ee\n")]
    for number, (stream, data) in enumerate(pieces):
        # A transcript for each piece, as if every worker died after one.
        transcript = Transcript(job.tenant_id, job.run_id, worker_id)
        transcript.resume()
        transcript.feed(stream, data, FIRST_AT.timestamp() + number)
        transcript.flush()
    lines = stored_lines(job.run_id, ended=True)
    assert facts(list(lines), terminal=False) == read_as_a_whole(pieces, terminal=False, ended=True)


# --- cost -----------------------------------------------------------------------------------

ROW = b"".join(b"a line of the log, %05d\n" % n for n in range(2500))


@pytest.fixture
def large_log(run_id: int) -> int:
    """20 MB in rows of 64 kB that begin and end within lines; returns the number of lines."""
    data = ROW * 340
    pieces = [(1, data[n : n + 65536]) for n in range(0, len(data), 65536)]
    pieces[1:1] = [(2, b"stderr begins a line and never ends it")]
    store_output(run_id, *pieces)
    assert RunOutput.objects.count() > 300
    return data.count(b"\n")


class Cost:
    """How many queries were made, and how many rows with their data were read."""

    def __init__(self) -> None:
        self.queries = self.rows = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        with CaptureQueriesContext(connection) as captured:
            yield
        made = [query["sql"] for query in captured.captured_queries]
        self.queries += len(made)
        # Each query is made again, because a query does not say how many rows were fetched.
        with connection.cursor() as cursor:
            for sql in made:
                if '"data"' in sql and "LENGTH(" not in sql:
                    self.rows += len(cursor.execute(sql).fetchall())


@pytest.fixture
def cost() -> Cost:
    return Cost()


def test_the_last_page_of_a_large_log_reads_a_few_rows(run_id: int, large_log: int, cost: Cost):
    with cost.counted():
        excerpt = last_lines(run_id, 300, ended=True)
    assert [line.number for line in excerpt.lines] == list(range(large_log - 299, large_log + 1))
    assert excerpt.lines[-1].text == "stderr begins a line and never ends it"
    assert cost.queries <= 8
    # The last two rows, and the rows in which their first line and the one of stderr begin.
    assert 0 < cost.rows <= 4


def test_a_page_in_the_middle_of_a_large_log_reads_a_few_rows(
    run_id: int, large_log: int, cost: Cost
):
    middle = large_log // 2
    with cost.counted():
        before = lines_before(run_id, middle, 300)
        after = lines_after(run_id, middle - 1, 300, ended=True)
    assert [line.number for line in before.lines] == list(range(middle - 300, middle))
    assert [line.number for line in after.lines] == list(range(middle, middle + 300))
    assert after.lines[0].text == f"a line of the log, {middle % 2500:05}"
    assert cost.queries <= 2 * 16
    assert 0 < cost.rows <= 12


def test_a_stream_that_goes_on_near_the_end_reads_only_the_rest(
    run_id: int, large_log: int, cost: Cost
):
    with cost.counted():
        reader = LogReader(run_id, large_log - 10, terminal=True)
        lines = [*reader.read(), *reader.unfinished(ended=False)]
    assert [line.number for line in lines] == list(range(large_log - 10, large_log + 1))
    assert cost.queries <= 18
    # The last row, and the rows in which its first line and the one of stderr begin.
    assert 0 < cost.rows <= 3


def test_a_progress_bar_of_thousands_of_rows_is_shown_from_its_last_ones(run_id: int, cost: Cost):
    bar = [(1, b"\r%5d of 3000 " % n + b"#" * 80) for n in range(3000)]
    store_output(run_id, (1, b"begins\x1b[32m\n"), *bar)
    with cost.counted():
        excerpt = last_lines(run_id, 1, ended=False)
    (line,) = excerpt.lines
    assert line.spans[0].text.startswith(" 2999 of 3000 ###")
    assert (line.spans[0].classes, line.open) == ("dv-fg-2", True)
    assert cost.queries <= 14
    # The last two rows, and in batches the rows of the bytes that are shown of one line.
    assert 0 < cost.rows <= 2 + LONGEST_BYTES // len(bar[0][1]) + ROWS_AT_ONCE
    # Its end is not a redrawing: the beginning of the line is needed, and read.
    store_output(run_id, (1, b"\n"), (1, b"y" * (LONGEST_BYTES + 7)), (1, b"z\nlast\n"))
    long, last = last_lines(run_id, 2, ended=True).lines
    assert long.text.startswith("yyy") and long.text.endswith("[... 8 bytes more in the download]")
    assert last.text == "last"
