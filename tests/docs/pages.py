"""The pages of the documentation as data: files, samples and inline code."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agents_app.conf import ROOT

_FENCE = re.compile(r"^```([\w-]*)$")
_NOTE = re.compile(r"^<!-- (.*) -->$")
_INLINE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Sample:
    """A block of code, and the comment that stands directly above it."""

    page: Path
    line: int
    language: str
    text: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_left_out(self) -> bool:
        return self.note.startswith("not run: ")


@cache
def pages() -> tuple[Path, ...]:
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    return (*top, *sorted((ROOT / "docs").rglob("*.md")))


@cache
def samples(*languages: str) -> tuple[Sample, ...]:
    found = [sample for page in pages() for sample in _read(page)]
    return tuple(each for each in found if not languages or each.language in languages)


def _read(page: Path) -> list[Sample]:
    found: list[Sample] = []
    lines = page.read_text().splitlines()
    start = None
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if start is None and fence:
            start = number
        elif start is not None and line == "```":
            language = lines[start].strip("`")
            text = "\n".join(lines[start + 1 : number]) + "\n"
            found.append(Sample(page, start + 1, language, text, _note(lines, start)))
            start = None
    assert start is None, f"{page}: the block of line {start} is not closed"
    return found


def _note(lines: list[str], start: int) -> str:
    above = _NOTE.match(lines[start - 1]) if start else None
    return above[1] if above else ""


def inline_code(page: Path) -> list[str]:
    """Texts between backticks, outside of blocks."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return _INLINE.findall(text)


def title(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()
