"""Lines of several runs, put together from pieces that end anywhere or nowhere."""

import pytest

from agents_app.cli import voices
from agents_app.cli.voices import LabelledLines
from agents_app.output.printed import Piece
from tests.agents_app.fleet import NOON


def piece(text: str, run: int = 1, stream: str = "stdout") -> Piece:
    return Piece(run, 1, stream, NOON, text)


def test_pieces_become_lines_of_their_own_run_and_stream():
    lines = LabelledLines()
    assert lines.of(piece("one\nt")) == ["one"]
    assert lines.of(piece("x", run=2)) == lines.of(piece("oh", stream="stderr")) == []
    assert lines.of(piece("wo\n\nthree")) == ["two", ""]
    assert lines.rest(1) == [("stderr", "oh"), ("stdout", "three")]
    assert lines.rest(1) == []
    assert lines.rest(2) == [("stdout", "x")]


def test_what_has_begun_is_not_copied_with_every_piece():
    copied: list[int] = []

    class Text(str):
        def __radd__(self, before: str) -> str:
            copied.append(len(before))
            return str.__add__(before, self)

    lines = LabelledLines()
    for _ in range(1000):
        assert lines.of(piece(Text("x"))) == []
    assert lines.of(piece("\n")) == ["x" * 1000]
    assert sum(copied) <= 1000


def test_a_line_that_does_not_end_comes_in_parts_and_whole(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(voices, "LONGEST_LINE", 10)
    lines = LabelledLines()
    parts = [part for _ in range(9) for part in lines.of(piece("abcd"))]
    assert parts == ["abcd" * 3] * 3
    assert lines.of(piece("end\n")) == ["end"]
