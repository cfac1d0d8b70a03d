"""Turns a line for a terminal into spans of plain text with styles; pure.

Colours, bold, underline and the like are kept, and the effect of carriage returns and of "erase in
line" on a progress bar. Every other control sequence is dropped, and no text becomes markup. (Rich
reads colours too, but shows an empty line for a bar that ends with a carriage return, and hostile
sequences make it slow or raise.)
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from agents_app.text import CONTROLS, CSI

# Of one line: each span is an element of a page.
MOST_SPANS = 500

_TOKEN = re.compile(
    rf"{CSI}(?P<sgr>[0-9;:]{{0,100}})m|{CSI}(?P<erase>[02]?)K|(?P<back>\r+)|{CONTROLS}"
)
_RESETS = ("\x1b[0m", "\x1b[m")
_FLAGS = {
    **{1: "bold", 2: "dim", 3: "italic", 4: "underline"},
    **{7: "inverse", 9: "strike", 21: "underline"},
}
_ENDS = {
    **{22: {"bold", "dim"}, 23: {"italic"}, 24: {"underline"}},
    **{27: {"inverse"}, 29: {"strike"}},
}
_STEPS = (0, 95, 135, 175, 215, 255)


@dataclass(frozen=True, slots=True)
class Style:
    """A colour is a number up to 15, shown as the page chooses, or #rrggbb; empty: the default."""

    color: str = ""
    background: str = ""
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StyledSpan:
    text: str
    style: Style = Style()

    @property
    def is_plain(self) -> bool:
        return self.style == Style()

    @property
    def classes(self) -> str:
        """Names for a stylesheet; they never depend on the text."""
        color, background = self._colors
        named = [f"fg-{color}" if color[:1] not in {"", "#"} else ""]
        named += [f"bg-{background}" if background[:1] not in {"", "#"} else ""]
        return " ".join(f"dv-{name}" for name in [*named, *sorted(self.style.flags)] if name)

    @property
    def color(self) -> str:
        return self._colors[0] if self._colors[0].startswith("#") else ""

    @property
    def background(self) -> str:
        return self._colors[1] if self._colors[1].startswith("#") else ""

    @property
    def _colors(self) -> tuple[str, str]:
        style = self.style
        if "inverse" in style.flags:
            return style.background or "paper", style.color or "ink"
        return style.color, style.background

    def shown(self) -> dict[str, Any]:
        """For JSON; defaults are left out."""
        style = {"look": self.classes, "color": self.color, "background": self.background}
        return {"text": self.text, **{name: value for name, value in style.items() if value}}


# --- a line ---------------------------------------------------------------------------------


def read_line(text: str, style: Style) -> tuple[tuple[StyledSpan, ...], Style]:
    """The spans of a line without its end, and the style after it; `style` is the one before it."""
    passes: list[list[StyledSpan]] = [[]]
    place = 0
    for token in _TOKEN.finditer(text):
        if place < token.start():
            passes[-1].append(StyledSpan(text[place : token.start()], style))
        place = token.end()
        if token["sgr"] is not None:
            style = _apply(style, token["sgr"])
        elif token["back"]:
            passes.append([])
        elif token["erase"] is not None:
            passes = [[] if token["erase"] == "2" else passes[-1]]
    if place < len(text):
        passes[-1].append(StyledSpan(text[place:], style))
    return _bounded(_visible(passes)), style


def style_after(text: str, style: Style) -> Style:
    """The style after a text of any number of lines; faster than reading each line."""
    if "\x1b" not in text and "\x9b" not in text:
        return style
    last_reset = max(0, *(text.rfind(reset) for reset in _RESETS))
    for token in _TOKEN.finditer(text, last_reset):
        if token["sgr"] is not None:
            style = _apply(style, token["sgr"])
    return style


def _visible(passes: Sequence[Sequence[StyledSpan]]) -> Iterator[StyledSpan]:
    """The spans that a terminal shows: each pass overwrites the passes before it from the start.

    From the last pass back, so that each span is visited once, however often it was overwritten.
    """
    covered = 0
    for spans in reversed(passes):
        end = 0
        for span in spans:
            start, end = end, end + len(span.text)
            if end > covered:
                yield replace(span, text=span.text[max(0, covered - start) :])
        covered = max(covered, end)


def _bounded(spans: Iterable[StyledSpan]) -> tuple[StyledSpan, ...]:
    """Merges neighbours of one style; the text after MOST_SPANS spans is kept, but plain."""
    alike = groupby(spans, key=attrgetter("style"))
    merged = [StyledSpan(_joined(group), style) for style, group in alike]
    if len(merged) <= MOST_SPANS:
        return tuple(merged)
    return (*merged[: MOST_SPANS - 1], StyledSpan(_joined(merged[MOST_SPANS - 1 :])))


def _joined(spans: Iterable[StyledSpan]) -> str:
    return "".join(span.text for span in spans)


# --- a style --------------------------------------------------------------------------------


def _apply(style: Style, parameters: str) -> Style:
    """Unknown and incomplete codes change nothing."""
    codes = _codes(parameters)
    for code in codes:
        style = _apply_code(style, code, codes)
    return style


def _codes(parameters: str) -> Iterator[list[int]]:
    """Each code with its parts after colons; an empty one means 0."""
    for code in parameters.split(";"):
        yield [int(part or 0) for part in code.split(":")]


def _apply_code(style: Style, code: list[int], rest: Iterator[list[int]]) -> Style:
    number = code[0]
    if number == 0:
        return Style()
    if number in {38, 48}:
        color = _color_of(code[1:] if len(code) > 1 else _color_codes(rest))
        return _set_color(style, number == 48, color) if color else style
    if number in _FLAGS:
        # 4:0 is no underline; 4:3 is a wavy one.
        ends = code[1:] == [0]
        flag = {_FLAGS[number]}
        return replace(style, flags=style.flags - flag if ends else style.flags | flag)
    if number in _ENDS:
        return replace(style, flags=style.flags - _ENDS[number])
    return _apply_color(style, number)


def _apply_color(style: Style, number: int) -> Style:
    if number in {39, 49}:
        return _set_color(style, number == 49, "")
    for first, background in ((30, False), (40, True)):
        if first <= number <= first + 7:
            return _set_color(style, background, str(number - first))
        if first + 60 <= number <= first + 67:
            return _set_color(style, background, str(number - first - 60 + 8))
    return style


def _set_color(style: Style, background: bool, color: str) -> Style:
    return replace(style, background=color) if background else replace(style, color=color)


def _color_codes(rest: Iterator[list[int]]) -> list[int]:
    """The codes of a colour in the codes that follow: 5 and one number, or 2 and three numbers."""
    kind = next(rest, [0])[0]
    return [kind, *(next(rest, [-1])[0] for _ in range({5: 1, 2: 3}.get(kind, 0)))]


def _color_of(parts: list[int]) -> str:
    if parts[:1] == [5] and len(parts) == 2 and 0 <= parts[1] <= 255:
        return _of_256(parts[1])
    # A colour space may stand between the 2 and the colours.
    values = parts[-3:]
    if parts[:1] == [2] and len(parts) in {4, 5} and all(0 <= value <= 255 for value in values):
        return "#" + "".join(f"{value:02x}" for value in values)
    return ""


def _of_256(number: int) -> str:
    """16 named colours, a cube of 6 steps, 24 greys."""
    if number < 16:
        return str(number)
    if number >= 232:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    red, green, blue = (number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6
    return "#" + "".join(f"{_STEPS[step]:02x}" for step in (red, green, blue))
