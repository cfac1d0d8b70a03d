"""The content of a file as plain values, each with its position, and limits for files."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents_app.names import canonical
from agents_app.skills.errors import SkillError, SourcePlace

MAX_BYTES = 64 * 1024
MAX_DEPTH = 20
MAX_NODES = 5000

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text of one file, its path, and its name in messages."""

    text: str
    path: Path
    label: str = ""

    @property
    def name(self) -> str:
        return self.label or str(self.path)


@dataclass(frozen=True, slots=True)
class Document:
    source: str
    data: dict[str, Any] = field(default_factory=dict)
    places: Mapping[KeyPath, SourcePlace] = field(default_factory=dict)

    def place(self, at: Iterable[str | int]) -> SourcePlace:
        """The position of a value or, if it is missing, of the table that should contain it."""
        path = canonical_path(at)
        while path:
            if path in self.places:
                return self.places[path]
            path = path[:-1]
        return SourcePlace(self.source)


def canonical_path(at: Iterable[str | int]) -> KeyPath:
    return tuple(canonical(part) if isinstance(part, str) else part for part in at)


def scalar_problem(value: object) -> str | None:
    """Why a value cannot be stored in environment variables, the database or JSON, or None."""
    if isinstance(value, str) and "\0" in value:
        return "a NUL character cannot be used in a value"
    if (
        isinstance(value, str)
        and not value.isascii()
        and value != value.encode("utf-8", "replace").decode()
    ):
        return "a lone surrogate is not a character"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not a finite number"
    return None


def check_text(source: SourceText) -> None:
    """Refuse a text that is too long or contains NUL, which no database stores as text."""
    size = len(source.text.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        raise SkillError(too_large_reason(size), SourcePlace(source.name))
    if "\0" in source.text:
        line = source.text.count("\n", 0, source.text.index("\0")) + 1
        raise SkillError(
            "contains a NUL character; save it as plain text", SourcePlace(source.name, line)
        )


def too_large_reason(size: int) -> str:
    return (
        f"has {size} bytes; at most {MAX_BYTES} (64 KiB) are read. Move long texts to other files"
    )
