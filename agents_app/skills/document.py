"""A file's text as plain values, each with its place; what they mean is parse's."""

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

At = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text of one file, where it is, and what messages call it."""

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
    places: Mapping[At, SourcePlace] = field(default_factory=dict)

    def place(self, at: Iterable[str | int]) -> SourcePlace:
        """Where this value stands or, if it is missing, the table that should hold it."""
        path = spelled(at)
        while path:
            if path in self.places:
                return self.places[path]
            path = path[:-1]
        return SourcePlace(self.source)


def spelled(at: Iterable[str | int]) -> At:
    return tuple(canonical(part) if isinstance(part, str) else part for part in at)


def scalar_problem(value: object) -> str | None:
    """Why a value cannot travel through an environment, a database and JSON, or None."""
    if isinstance(value, str) and "\0" in value:
        return "a NUL character cannot be used in a value"
    if (
        isinstance(value, str)
        and not value.isascii()
        and value != value.encode("utf-8", "replace").decode()
    ):
        return "a lone surrogate is not a character"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not a number that JSON can carry"
    return None


def check_text(source: SourceText) -> None:
    """Refuse what no reader should see: too much, or a byte that no database stores as text."""
    size = len(source.text.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        raise SkillError(too_large(size), SourcePlace(source.name))
    if "\0" in source.text:
        line = source.text.count("\n", 0, source.text.index("\0")) + 1
        raise SkillError(
            "contains a NUL character; save it as plain text", SourcePlace(source.name, line)
        )


def too_large(size: int) -> str:
    return (
        f"has {size} bytes; at most {MAX_BYTES} (64 KiB) are read. Move long texts to other files"
    )
