"""Colours and progress bars as spans of plain text, whatever a program prints."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app.output import ansi
from agents_app.output.ansi import MOST_SPANS, Style, StyledSpan, read_line, style_after
from agents_app.text import as_text

PLAIN = Style()
# Pieces of which hostile and honest output is made.
PIECES = st.sampled_from(
    [
        *(
            "a",
            "<b>",
            "&lt;",
            "50%",
            "€",
            "\t",
            "\r",
            "\x1b",
            "\x9b",
            "\x1b[",
            "\x1b]8;;http://x\x07",
        ),
        *("\x1b[0m", "\x1b[m", "\x1b[31m", "\x1b[1;4m", "\x1b[38;5;200m", "\x1b[48;2;1;2;3m"),
        *("\x1b[38;5m", "\x1b[38;2;1m", "\x1b[;;m", "\x1b[4:3m", "\x1b[K", "\x1b[2K", "\x1b[2J"),
        *("\x1b[999999m", "\x1b[?25l", "\x1b(B", "\x1b\\", "\x07", "\x08", "m", ";", "3"),
    ]
)
LINES = st.lists(PIECES, max_size=20).map("".join)


def spans(text: str, style: Style = PLAIN) -> list[tuple[str, str, str, str]]:
    return [(s.text, s.classes, s.color, s.background) for s in read_line(text, style)[0]]


def plain(text: str) -> str:
    return "".join(span.text for span in read_line(text, PLAIN)[0])


# --- colours --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codes", "classes", "color", "background"),
    [
        ("31", "dv-fg-1", "", ""),
        ("91", "dv-fg-9", "", ""),
        ("44", "dv-bg-4", "", ""),
        ("104", "dv-bg-12", "", ""),
        ("38;5;9", "dv-fg-9", "", ""),
        ("38;5;16", "", "#000000", ""),
        ("38;5;208", "", "#ff8700", ""),
        ("48;5;231", "", "", "#ffffff"),
        ("38;5;232", "", "#080808", ""),
        ("38;5;255", "", "#eeeeee", ""),
        ("38;2;1;20;255", "", "#0114ff", ""),
        ("38:2:1:20:255", "", "#0114ff", ""),
        ("38:2::1:20:255", "", "#0114ff", ""),
        ("1;4;33", "dv-fg-3 dv-bold dv-underline", "", ""),
        ("4:3", "dv-underline", "", ""),
        ("7", "dv-fg-paper dv-bg-ink dv-inverse", "", ""),
        ("7;31", "dv-fg-paper dv-bg-1 dv-inverse", "", ""),
        ("1;22", "", "", ""),
        ("31;39", "", "", ""),
        ("41;0", "", "", ""),
        ("31;", "", "", ""),
        ("4;4:0", "", "", ""),
    ],
)
def test_a_colour_or_a_look_is_read(codes: str, classes: str, color: str, background: str):
    assert spans(f"\x1b[{codes}mtext") == [("text", classes, color, background)]


@pytest.mark.parametrize("codes", ["38;5", "38;2;1;2", "38;5;256", "48;2;1;2;300", "38;9", "77"])
def test_a_colour_that_is_none_changes_nothing(codes: str):
    assert spans(f"\x1b[{codes}mtext") == [("text", "", "", "")]


def test_a_style_ends_where_it_is_reset_and_else_goes_on_in_the_next_line():
    first, style = read_line("a\x1b[31mb\x1b[0mc\x1b[1md", PLAIN)
    assert [(span.text, span.classes) for span in first] == [
        ("a", ""),
        ("b", "dv-fg-1"),
        ("c", ""),
        ("d", "dv-bold"),
    ]
    assert spans("e", style) == [("e", "dv-bold", "", "")]


def test_what_is_not_special_is_left_out_of_the_json():
    assert StyledSpan("x").shown() == {"text": "x"}
    assert StyledSpan("x", Style("#010203", "4")).shown() == {
        "text": "x",
        "look": "dv-bg-4",
        "color": "#010203",
    }


# --- everything else ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["\x1b]0;title\x07", "\x1b[2J", "\x1b[10;10H", "\x1b]52;c;aGk=\x1b\\", "\x1bP1q\x1b\\", "\x08"],
)
def test_what_is_no_look_is_dropped(text: str):
    assert plain(f"a{text}b") == "ab"


def test_markup_stays_text():
    assert plain("<script>alert(1)</script>") == "<script>alert(1)</script>"


def test_a_huge_or_endless_sequence_costs_no_more_than_its_length():
    for text in ("\x1b[" + "9" * 200_000 + "m", "\x1b[" * 100_000, "\x1b]" * 100_000):
        assert "\x1b" not in plain(text)


# --- progress bars --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("10%\r20%\r30%", "30%"),
        ("10%\r20%\r", "20%"),
        ("windows\r", "windows"),
        ("loading...\rok", "okading..."),
        ("loading...\r\x1b[Kok", "ok"),
        ("loading...\rok\x1b[K", "ok"),
        ("loading...\x1b[2K\rok", "ok"),
        ("\r\r\r", ""),
    ],
)
def test_a_bar_is_shown_as_a_terminal_would_leave_it(printed: str, shown: str):
    assert plain(printed) == shown


def test_what_a_bar_leaves_keeps_its_colour():
    assert spans("\x1b[31mabc\x1b[0m\rx") == [("x", "", "", ""), ("bc", "dv-fg-1", "", "")]


def test_a_bar_drawn_over_many_colours_costs_no_more_than_its_length(
    monkeypatch: pytest.MonkeyPatch,
):
    made = []

    class Counted(StyledSpan):
        def __init__(self, text: str, style: Style = PLAIN) -> None:
            made.append(text)
            super().__init__(text, style)

    monkeypatch.setattr(ansi, "StyledSpan", Counted)
    line = "\x1b[mx" * 300 + "\ry" * 300
    assert plain(line) == "y" + "x" * 299
    assert len(made) < len(line)


# --- how many spans -------------------------------------------------------------------------


def test_neighbours_that_look_alike_are_one_span():
    assert spans("\x1b[31ma\x1b[31mb\x1b[0;31mc\x1b[md\x07e") == [
        ("abc", "dv-fg-1", "", ""),
        ("de", "", "", ""),
    ]


def test_a_line_with_a_colour_for_each_letter_is_whole_but_plain_past_a_bound():
    letters = MOST_SPANS + 100
    line = "".join(f"\x1b[{31 + number % 2}mx" for number in range(letters))
    shown, style = read_line(line, PLAIN)
    assert len(shown) == MOST_SPANS
    assert shown[-1] == StyledSpan("x" * 101)
    assert not any(span.is_plain for span in shown[:-1])
    assert style == Style("2" if letters % 2 == 0 else "1")


# --- whatever comes -------------------------------------------------------------------------


@given(LINES)
def test_no_control_and_no_markup_is_ever_made(text: str):
    for span in read_line(text, PLAIN)[0]:
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", span.text)
        assert re.fullmatch(r"(dv-[a-z]+(-(\d{1,2}|paper|ink))? ?)*", span.classes)
        for color in (span.color, span.background):
            assert re.fullmatch(r"(#[0-9a-f]{6})?", color)


@given(LINES.filter(lambda text: "\r" not in text and "K" not in text))
def test_the_text_is_the_same_as_without_looks(text: str):
    assert plain(text) == as_text(text.encode())


@given(st.lists(LINES, max_size=5))
def test_the_style_after_many_lines_is_that_of_reading_each_line(lines: list[str]):
    style = PLAIN
    for line in lines:
        _, style = read_line(line, style)
    assert style_after("\n".join(lines), PLAIN) == style
