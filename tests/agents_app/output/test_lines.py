"""A log as lines: numbered, in the order in which they ended, wherever its pieces were cut."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app.output import lines as log_lines
from agents_app.output.lines import (
    LONGEST_BYTES,
    MOST_WEIGHT,
    SPAN_WEIGHT,
    LogCutter,
    LogLine,
    Printed,
    last_lines,
    lines_after,
    lines_before,
    lines_from,
)
from tests.agents_app.fleet import NOON, at

DATA = st.lists(
    st.sampled_from([b"a", b"\n", b"b\n", b"\r", b"\x1b[31m", b"\x1b[0m", b"\xe2\x82", b"\xac"]),
    max_size=8,
).map(b"".join)
PIECES = st.lists(
    st.builds(Printed, st.sampled_from(["stdout", "stderr"]), st.just(NOON), DATA), max_size=12
)


def out(*data: bytes, stream: str = "stdout") -> list[Printed]:
    return [Printed(stream, at(second), each) for second, each in enumerate(data)]


def texts(lines: Iterable[LogLine]) -> list[str]:
    return [line.text for line in lines]


def whole(pieces: Iterable[Printed]) -> list[LogLine]:
    return list(last_lines(pieces, 1000, ended=True).lines)


def test_a_line_is_as_old_as_its_start_and_whole_wherever_it_was_cut():
    euro = "€".encode()
    first, second = whole(out(b"5 " + euro[:1], euro[1:] + b" left\nnext\n"))
    assert (first.number, first.text, first.at) == (0, "5 € left", at(0))
    assert (second.number, second.text, second.at) == (1, "next", at(1))


def test_lines_of_both_streams_never_mix():
    pieces = [*out(b"half "), *out(b"oops\n", stream="stderr"), *out(b"a line\n")]
    assert [(line.stream, line.text) for line in whole(pieces)] == [
        ("stderr", "oops"),
        ("stdout", "half a line"),
    ]


def test_a_colour_of_one_stream_goes_on_in_its_next_line_and_not_in_the_other():
    pieces = [*out(b"\x1b[31ma\n"), *out(b"b\n", stream="stderr"), *out(b"c\n")]
    assert [line.spans[0].classes for line in whole(pieces)] == ["dv-fg-1", "", "dv-fg-1"]


def test_a_line_that_grows_is_shown_open_and_ends_with_the_log():
    pieces = out(b"done\n10%\r", b"20%\r")
    growing = last_lines(pieces, 10, ended=False)
    assert [(line.number, line.text, line.open) for line in growing.lines] == [
        (0, "done", False),
        (1, "20%", True),
    ]
    assert growing.last_ended == 0
    over = last_lines(pieces, 10, ended=True)
    assert over.last_ended == 1
    assert not over.lines[-1].open


def test_an_endless_line_shows_its_beginning_and_an_endless_bar_its_end():
    (line,) = whole(out(b"x" * (LONGEST_BYTES + 5)))
    assert line.text.endswith("x [... 5 bytes more in the download]")
    (bar,) = whole(out(b"".join(b"\r%6d" % number for number in range(10_000))))
    assert bar.text == "  9999"


def test_only_the_end_of_a_long_log_is_read_into_lines():
    pieces = out(*(b"line %d\n" % number for number in range(100)))
    shown = last_lines(pieces, 10, ended=False)
    assert texts(shown.lines) == [f"line {number}" for number in range(90, 100)]
    assert (shown.earlier, shown.last_ended) == (90, 99)
    before = lines_before(pieces, shown.earlier, 20)
    assert texts(before.lines) == [f"line {number}" for number in range(70, 90)]
    assert before.earlier == 70
    assert texts(lines_before(pieces, 5, 20).lines) == [f"line {number}" for number in range(5)]


def heavy_log() -> list[Printed]:
    """Each letter has a colour of its own."""
    line = b"\x1b[31mx\x1b[32my" * 500 + b"\n"
    return out(*[line] * 50)


def test_of_heavy_lines_a_stretch_has_fewer_and_the_others_are_not_even_read(
    monkeypatch: pytest.MonkeyPatch,
):
    read = []
    read_line = log_lines.read_line
    monkeypatch.setattr(
        log_lines, "read_line", lambda text, style: read.append(text) or read_line(text, style)
    )
    shown = last_lines(heavy_log(), 50, ended=True)
    spans = sum(len(line.spans) for line in shown.lines)
    assert 0 < spans <= MOST_WEIGHT / SPAN_WEIGHT
    assert sum(map(len, read)) <= MOST_WEIGHT + LONGEST_BYTES
    assert shown.earlier == shown.lines[0].number > 0


def test_whoever_asks_on_gets_all_heavy_lines_once_back_and_forth():
    pieces = heavy_log()
    stretch = last_lines(pieces, 50, ended=True)
    back = list(stretch.lines)
    while stretch.earlier:
        stretch = lines_before(pieces, stretch.earlier, 50)
        back[:0] = stretch.lines
    assert [line.number for line in back] == list(range(50))
    forth: list[LogLine] = []
    while lines := lines_after(pieces, len(forth) - 1, 50).lines:
        assert len(lines) < 50
        forth += lines
    assert forth == back


def test_a_line_that_is_too_heavy_alone_comes_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_lines, "MOST_WEIGHT", 10)
    pieces = out(b"one\n", b"two\n")
    assert texts(last_lines(pieces, 5, ended=True).lines) == ["two"]
    assert texts(lines_before(pieces, 1, 5).lines) == ["one"]
    assert texts(lines_after(pieces, -1, 5).lines) == ["one"]


def test_nothing_printed_is_no_line():
    assert last_lines([], 10, ended=False).lines == ()
    assert last_lines([], 10, ended=True).last_ended == -1


@given(PIECES, st.integers(1, 6))
def test_the_end_of_a_log_is_the_end_of_the_whole(pieces: list[Printed], most: int):
    shown = last_lines(pieces, most, ended=True)
    assert list(shown.lines) == whole(pieces)[-most:]


@given(PIECES, st.integers(0, 20))
def test_lines_that_are_passed_over_leave_the_others_as_they_are(pieces: list[Printed], first: int):
    ended = [line for line in last_lines(pieces, 1000, ended=False).lines if not line.open]
    assert list(lines_from(pieces, first)) == ended[first:]


@given(PIECES)
def test_lines_are_numbered_without_a_gap(pieces: list[Printed]):
    cutter = LogCutter()
    lines = [line for piece in pieces for line in cutter.feed(piece)]
    lines += cutter.open_lines()
    assert [line.number for line in lines] == list(range(len(lines)))
