"""Tables and notes that all generated pages share."""

import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from agents_app.conf import ROOT

DOCS = ROOT / "docs"
_DESCRIPTIONS = Path(__file__).with_name("descriptions.toml")


@cache
def descriptions(section: str) -> dict[str, str]:
    """Descriptions of fields, variables or events by name; the code has everything else."""
    found: dict[str, dict[str, str]] = tomllib.loads(_DESCRIPTIONS.read_text())
    return found[section]


def describe(section: str, name: str) -> str:
    try:
        return descriptions(section)[name]
    except KeyError:
        raise LookupError(
            f"{name!r} is not described: add it to [{section}] of {_DESCRIPTIONS.name}"
        ) from None


def page(title: str, source: str, *parts: str) -> str:
    note = f"<!-- Generated from {source} by tests/docs/generate: run `make docs`. -->"
    return "\n\n".join((note, f"# {title}", *(part.strip() for part in parts))) + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def code(text: object) -> str:
    return f"`{text}`"
