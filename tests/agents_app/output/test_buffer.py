"""The output buffer keeps bytes, order and bounds; the decoder makes text that is safe to show."""

import time
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agents_app.output.buffer import (
    HEAD_BYTES,
    HEAD_SEGMENTS,
    SEGMENT_BYTES,
    TAIL_BYTES,
    OutputBuffer,
    Segment,
)
from agents_app.text import TextDecoder, as_text

pieces = st.lists(
    st.tuples(st.sampled_from([1, 2]), st.binary(max_size=200), st.floats(0, 0.2)), max_size=50
)


def joined(segments: list[Segment], stream: int) -> bytes:
    return b"".join(segment.data for segment in segments if segment.stream == stream)


def test_quick_reads_of_one_stream_become_one_segment():
    buffer = OutputBuffer()
    buffer.feed(1, b"a", 10.0)
    buffer.feed(1, b"b", 10.09)
    buffer.feed(1, b"c", 10.18)
    assert buffer.finish() == [Segment(1, 1, 10.0, b"abc")]


def test_a_pause_starts_a_new_segment_with_its_own_time():
    buffer = OutputBuffer()
    buffer.feed(1, b"a", 10.0)
    buffer.feed(1, b"b", 10.2)
    assert buffer.finish() == [Segment(1, 1, 10.0, b"a"), Segment(2, 1, 10.2, b"b")]


def test_the_streams_stay_in_order():
    buffer = OutputBuffer()
    for stream in (1, 2, 1, 1, 2):
        buffer.feed(stream, b"%d" % stream, 10.0)
    assert [(s.stream, s.data) for s in buffer.finish()] == [
        (1, b"1"),
        (2, b"2"),
        (1, b"11"),
        (2, b"2"),
    ]


def test_a_segment_is_never_larger_than_64_kib():
    buffer = OutputBuffer()
    buffer.feed(1, b"x" * 200_000, 10.0)
    sizes = [len(segment.data) for segment in buffer.finish()]
    assert max(sizes) == SEGMENT_BYTES
    assert sum(sizes) == 200_000


def test_nothing_is_taken_twice_and_nothing_grows_after_it_was_taken():
    buffer = OutputBuffer()
    buffer.feed(1, b"a", 10.0)
    assert buffer.take() == [Segment(1, 1, 10.0, b"a")]
    assert buffer.take() == []
    buffer.feed(1, b"b", 10.01)
    assert buffer.finish() == [Segment(2, 1, 10.01, b"b")]


def test_no_output_is_no_segment():
    buffer = OutputBuffer()
    buffer.feed(1, b"", 10.0)
    assert buffer.finish() == []


@given(pieces, st.sets(st.integers(0, 50)))
@pytest.mark.fault("F35")
def test_any_bytes_survive_exactly_whenever_they_are_taken(fed, taken_after):
    buffer, segments = OutputBuffer(), []
    at = 0.0
    for number, (stream, data, pause) in enumerate(fed):
        at += pause
        buffer.feed(stream, data, at)
        segments += buffer.take() if number in taken_after else []
    segments += buffer.finish()
    for stream in (1, 2):
        assert joined(segments, stream) == b"".join(d for s, d, _ in fed if s == stream)
    assert [segment.seq for segment in segments] == list(range(1, len(segments) + 1))
    assert all(segment.data for segment in segments)


def test_up_to_11_mb_nothing_is_left_out():
    buffer = OutputBuffer()
    data = bytes(range(256)) * 42968  # 10,999,808 bytes
    buffer.feed(1, data, 10.0)
    segments = buffer.finish()
    assert joined(segments, 1) == data
    assert joined(segments, 0) == b""
    assert buffer.left_out_bytes == 0


def test_one_byte_too_many_is_counted_and_marked():
    buffer = OutputBuffer()
    buffer.feed(1, b"x" * (HEAD_BYTES + TAIL_BYTES + 1), 10.0)
    segments = buffer.finish()
    assert buffer.left_out_bytes == 1
    assert joined(segments, 0) == b"\n[... 1 bytes left out ...]\n"
    assert len(joined(segments, 1)) == HEAD_BYTES + TAIL_BYTES


def test_of_a_gigabyte_head_and_tail_are_kept_with_a_marker_between():
    buffer, segments = OutputBuffer(), []
    for number in range(20_000):
        buffer.feed(1 + number % 2, b"%-50000d" % number, number / 100)
        segments += buffer.take()
    segments += buffer.finish()
    [marker] = [segment for segment in segments if segment.stream == 0]
    head = [segment for segment in segments if segment.seq < marker.seq]
    tail = [segment for segment in segments if segment.seq > marker.seq]
    assert marker.data == b"\n[... 989 MB left out ...]\n"
    assert sum(len(segment.data) for segment in head) == HEAD_BYTES
    assert sum(len(segment.data) for segment in tail) == TAIL_BYTES
    assert head[0].data.startswith(b"0 ")
    assert tail[-1].data.startswith(b"19999 ")
    assert tail[0].at == marker.at == 199.8
    assert buffer.left_out_bytes == 1_000_000_000 - HEAD_BYTES - TAIL_BYTES


def test_a_chatterbox_cannot_make_endless_segments():
    buffer, segments = OutputBuffer(), []
    for number in range(100_000):
        buffer.feed(1 + number % 2, b"x", 10.0)
        if number % 1000 == 0:
            segments += buffer.take()
    segments += buffer.finish()
    assert len(segments) <= 2 * HEAD_SEGMENTS + 1
    assert joined(segments, 0) == b"\n[... 60 kB left out ...]\n"
    assert len(joined(segments, 1)) + len(joined(segments, 2)) + buffer.left_out_bytes == 100_000


def test_100_mb_a_second_is_no_effort():
    buffer = OutputBuffer()
    data = b"x" * 65536
    began = time.perf_counter()
    for number in range(1600):
        buffer.feed(1, data, number / 1000)
    assert time.perf_counter() - began < 0.5


# Text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Grüße, 世界 🐑\n".encode(), "Grüße, 世界 🐑\n"),
        (b"a\xff\xfeb", "a\ufffd\ufffdb"),
        (b"cut \xe4\xb8", "cut \ufffd"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (b"a\x00b\x07c\x08d\x7fe", "abcde"),
        (b"tab\tand\nline", "tab\tand\nline"),
        (b"dos\r\nline", "dos\nline"),
        (b"10%\r20%\r30%\n", "10%\n20%\n30%\n"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b[?25l\x1b[2K\x1b[1Gx", "x"),
        (b"\x1b[38:2::1:2:3mx\x1b[ q", "x"),
        (b"\x1b]0;title\x07x", "x"),
        (b"\x1b]52;c;ZXZpbA==\x1b\\x", "x"),
        (b"\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1bPq#0;2;0;0;0\x1b\\x", "x"),
        (b"\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\x", "x"),
        (b"\x1b(B\x1b=\x1bMx\x1bcy", "xy"),
        (b"\xc2\x9b31mred\xc2\x9d0;t\xc2\x9cx", "redx"),
        (b"\x1b]0;never closed\nnext line", "\nnext line"),
        (b"ends in \x1b", "ends in "),
        (b"ends in \x1b[3", "ends in "),
        (b"ends in \x1b]0;", "ends in "),
        (b"ends\r", "ends\n"),
        (b"\x1b\x1b[31mx", "x"),
        (b"<script>&", "<script>&"),
    ],
)
def test_text_for_people(data, text):
    assert as_text(data) == text


nasty = st.lists(
    st.sampled_from(
        [
            *(b"\x1b", b"[", b"]", b"P", b"31", b"m", b"\x07", b"\\", b"\r", b"\n", b" ", b"a"),
            *("ü".encode(), "🐑".encode(), b"\x00", b"\xff", b"\xc2", b"\x9b", b"\xc2\x9d"),
        ]
    ),
    max_size=30,
).map(b"".join)


@given(nasty)
@settings(max_examples=500)
def test_no_control_character_ever_gets_through(data):
    text = as_text(data)
    assert not [c for c in text if (c < " " and c not in "\t\n") or "\x7f" <= c <= "\x9f"]
    text.encode()


@given(nasty, st.sets(st.integers(0, 60)))
@example(b"\x1b [[", {2})
@example(b"\x1b[1 5m", {4})
@example(b"\r\x1b\r", {1})
@settings(max_examples=1000)
def test_it_does_not_matter_where_the_bytes_were_split(data, cuts):
    decoder = TextDecoder()
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    parts = [decoder.decode(data[a:b]) for a, b in pairwise(edges)]
    assert "".join([*parts, decoder.decode(b"", final=True)]) == as_text(data)


def test_an_endless_escape_string_takes_no_memory():
    decoder = TextDecoder()
    assert decoder.decode(b"before\x1b]52;c;") == "before"
    for _ in range(100):
        assert decoder.decode(b"QUJD" * 10_000) == ""
    assert len(decoder._escape) < 10
    assert decoder.decode(b"=\x07after") == "after"


@pytest.mark.parametrize(
    "unit", [b"\x1b", b"\x1b]", b"\x1b[", b"\xc2\x9d", b"\r", b"\x1b ", b"\xc2\x9b1", b"\x1b]a\x1b"]
)
def test_a_hostile_output_is_cleaned_in_linear_time(unit):
    short, long = (_cpu_seconds(unit * count + b"\n.") for count in (50_000, 400_000))
    assert long < short * 8 * 4, "eight times as much takes sixty-four times as long"


def _cpu_seconds(output: bytes) -> float:
    """Of this thread: a busy machine is not the decoder's fault."""
    began = time.thread_time()
    TextDecoder().decode(output)
    return time.thread_time() - began
