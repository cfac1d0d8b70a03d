"""Watchers see whole lines of stdout, however the bytes arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app.output import watchers
from agents_app.output.watchers import WatchedSink


class Recorder:
    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def line(self, text: bytes, _at: float) -> None:
        self.lines.append(text)


class Sink:
    def __init__(self) -> None:
        self.fed = b""

    def feed(self, _stream: int, data: bytes, _at: float) -> None:
        self.fed += data

    def flush(self) -> None: ...


def watched(*pieces: bytes, stream: int = 1) -> tuple[list[bytes], bytes]:
    recorder, sink = Recorder(), Sink()
    with WatchedSink(sink, [recorder]) as both:
        for piece in pieces:
            both.feed(stream, piece, 0.0)
    return recorder.lines, sink.fed


@given(st.lists(st.binary(max_size=5)))
def test_lines_are_the_same_wherever_the_pieces_are_cut(pieces):
    whole = b"".join(pieces)
    lines, fed = watched(*pieces)
    assert fed == whole
    expected = [line.removesuffix(b"\r") for line in whole.split(b"\n")]
    assert lines == (expected if whole and not whole.endswith(b"\n") else expected[:-1])


def test_stderr_is_passed_on_but_not_shown_to_watchers():
    assert watched(b"one\ntwo\n", stream=2) == ([], b"one\ntwo\n")


@pytest.mark.parametrize("size", [11, 40])
def test_a_line_that_is_too_long_is_left_out_and_the_next_one_is_not(monkeypatch, size):
    monkeypatch.setattr(watchers, "LONGEST_LINE", 10)
    long = b"x" * size
    assert watched(long[:6], long[6:], b"\nshort\n")[0] == [b"short"]
