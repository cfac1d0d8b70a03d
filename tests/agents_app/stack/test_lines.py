"""Splitting the output of a child into lines, independent of its pieces."""

from hypothesis import given
from hypothesis import strategies as st

from agents_app.stack.lines import PrintableLines, printable


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 50))
def test_lines_do_not_depend_on_how_the_bytes_arrive(chunks: list[bytes], limit: int) -> None:
    in_pieces, in_one_piece = PrintableLines(limit), PrintableLines(limit)
    pieces = [line for chunk in chunks for line in in_pieces.feed(chunk)] + in_pieces.finish()
    whole = in_one_piece.feed(b"".join(chunks)) + in_one_piece.finish()
    assert pieces == whole
    assert len(whole) - b"".join(chunks).count(b"\n") in (0, 1)


@given(st.binary(max_size=200))
def test_printed_bytes_cannot_control_a_terminal(raw: bytes) -> None:
    text = printable(raw.replace(b"\n", b""))
    assert not any((ord(char) < 32 and char != "\t") or 127 <= ord(char) < 160 for char in text)


def test_a_long_line_costs_no_more_memory_than_its_head() -> None:
    splitter = PrintableLines(10)
    for _ in range(1000):
        assert splitter.feed(b"x" * 1000) == []
    assert len(splitter._head) == 10
    assert splitter.feed(b"\nnext\n") == ["xxxxxxxxxx ... (999990 bytes more)", "next"]


def test_an_end_without_a_newline_is_a_line() -> None:
    splitter = PrintableLines()
    assert splitter.feed(b"one\r\ntw") == ["one"]
    assert splitter.feed(b"o") == []
    assert splitter.finish() == ["two"]
    assert splitter.finish() == []
