"""Lines of a log: numbered in the order in which they end, wherever the output was cut."""

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents_app.output import lines as log_lines
from agents_app.output.lines import (
    LONGEST_BYTES,
    MOST_WEIGHT,
    SPAN_WEIGHT,
    BegunLine,
    LineCutter,
    LogLine,
    OutputRow,
    limited,
)
from agents_app.output.numbering import Numbering, StreamState
from tests.agents_app.fleet import at
from tests.agents_app.output.stored import numbered

OUT, ERR = 1, 2


class NothingStored:
    """For logs that are cut from their first row on."""

    def load(self, stream: int, state: StreamState, before_seq: int) -> BegunLine:
        raise AssertionError("there is no row before the first one")

    def load_whole(self, stream: int, first_seq: int, last_seq: int) -> bytes:
        raise AssertionError("no line is cut")


def cut(*pieces: tuple[int, bytes], terminal: bool = True, ended: bool = True) -> list[LogLine]:
    cutter = LineCutter(NothingStored(), terminal=terminal)
    rows = [
        OutputRow(s.seq, s.stream, datetime.fromtimestamp(s.at, UTC), s.data, s.first_line)
        for s in numbered(pieces)
    ]
    lines = [line for row in rows for line in cutter.feed(row)]
    return lines + cutter.unfinished(ended=ended)


def out(*data: bytes) -> list[tuple[int, bytes]]:
    return [(OUT, each) for each in data]


def plain(*pieces: tuple[int, bytes]) -> list[str]:
    return [line.text for line in cut(*pieces, terminal=False)]


def shown(lines: Iterable[LogLine]) -> list[str]:
    return ["".join(span.text for span in line.spans) for line in lines]


def test_a_line_has_the_time_of_its_first_byte_and_is_whole_wherever_it_was_cut():
    euro = "€".encode()
    first, second = cut(*out(b"5 " + euro[:1], euro[1:] + b" left\nnext\n"))
    assert (first.number, first.text, first.at) == (0, "5 € left", at(0))
    assert (second.number, second.text, second.at) == (1, "next", at(1))


def test_two_streams_that_take_turns_keep_their_lines_apart():
    pieces = [(OUT, b"a"), (ERR, b"x"), (OUT, b"b\nc"), (ERR, b"y\n\n")]
    lines = [(line.stream, line.text, line.at) for line in cut(*pieces, terminal=False)]
    assert lines == [
        ("stdout", "ab", at(0)),
        ("stderr", "xy", at(1)),
        ("stderr", "", at(3)),
        ("stdout", "c", at(2)),
    ]


def test_a_colour_of_one_stream_goes_on_in_its_next_line_and_not_in_the_other():
    pieces = [(OUT, b"\x1b[31ma\n"), (ERR, b"b\n"), (OUT, b"c\n")]
    assert [line.spans[0].classes for line in cut(*pieces)] == ["dv-fg-1", "", "dv-fg-1"]


def test_an_unfinished_line_is_open_until_the_output_ends():
    pieces = out(b"done\n10%\r", b"20%\r")
    growing = cut(*pieces, ended=False)
    assert [(line.number, line.open) for line in growing] == [(0, False), (2, True)]
    assert shown(growing) == ["done", "20%"]
    assert not cut(*pieces, ended=True)[-1].open


def test_carriage_returns_end_plain_lines_and_redraw_terminal_lines():
    pieces = out(b"10%\r50%\r\r100%\r\nnext\r", b"\nlast\r", b"more")
    assert plain(*pieces) == ["10%", "50%", "100%", "next", "last", "more"]
    lines = cut(*pieces)
    assert shown(lines) == ["100%", "next", "more"]
    assert [line.number for line in lines] == [2, 3, 5]


def test_what_has_no_text_after_the_last_line_is_no_line():
    assert plain(*out(b"done\n", b"\x1b[0m\x1b[?25h")) == ["done"]
    assert shown(cut(*out(b"done\n\x1b[0m"))) == ["done"]
    assert cut() == []


def test_of_a_long_line_the_beginning_is_shown_and_of_a_long_progress_bar_the_end():
    (line,) = cut(*out(b"x" * (LONGEST_BYTES + 5)))
    assert shown([line])[0].endswith("x [... 5 bytes more in the download]")
    (bar,) = cut(*out(b"".join(b"\r%6d" % number for number in range(10_000))))
    assert shown([bar]) == ["  9999"]


# --- excerpts -------------------------------------------------------------------------------


def heavy_log() -> list[LogLine]:
    """Lines in which each letter has a colour of its own."""
    return cut((OUT, (b"\x1b[31mx\x1b[32my" * 500 + b"\n") * 50))


def test_an_excerpt_has_fewer_lines_when_they_are_heavy_and_does_not_style_the_others(
    monkeypatch: pytest.MonkeyPatch,
):
    read = []
    read_line = log_lines.read_line
    monkeypatch.setattr(
        log_lines, "read_line", lambda text, style: read.append(text) or read_line(text, style)
    )
    lines = list(limited(heavy_log()))
    spans = sum(len(line.spans) for line in lines)
    assert 0 < spans <= MOST_WEIGHT / SPAN_WEIGHT
    assert sum(map(len, read)) <= MOST_WEIGHT + LONGEST_BYTES


def test_a_line_that_is_too_heavy_for_an_excerpt_comes_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_lines, "MOST_WEIGHT", 10)
    assert shown(limited(cut(*out(b"one\n", b"two\n")))) == ["one"]


# --- numbering ------------------------------------------------------------------------------

PRINTED = st.lists(
    st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b"\x1b[31m", b"\x1b[", b"1m", b"\xc2\x9b4m"]),
    max_size=12,
).map(b"".join)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(PRINTED, st.lists(st.integers(0, 40), max_size=5))
def test_the_numbering_does_not_depend_on_where_the_output_was_cut(data: bytes, cuts: list[int]):
    places = sorted({0, *cuts, len(data)})
    pieces = [data[a:b] for a, b in pairwise(places)]
    whole, cut_up = Numbering(), Numbering()
    whole.feed(1, OUT, data)
    for piece in pieces:
        # As if each row was fed by another process.
        cut_up = Numbering(cut_up.count, cut_up.carried)
        cut_up.feed(1, OUT, piece)
    assert (cut_up.count, cut_up.carried) == (whole.count, whole.carried)


def test_rows_that_begin_a_line_in_the_default_style_carry_nothing():
    segments = numbered(out(b"a\n", b"b\nc\n", b"\x1b[31md\x1b[0m\n", b"e"))
    assert [(segment.first_line, segment.carried) for segment in segments] == [
        *((0, ""), (1, ""), (3, ""), (4, "")),
    ]
