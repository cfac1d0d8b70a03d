"""Reads TOML as plain values with the line of each key, which tomllib does not report."""

import re
import tomllib
from datetime import date, datetime, time
from typing import Any

from agents_app.skills.document import (
    MAX_DEPTH,
    MAX_NODES,
    Document,
    KeyPath,
    SourceText,
    canonical_path,
    check_text,
    scalar_problem,
)
from agents_app.skills.errors import Problems, SkillError, SourcePlace

_POSITION = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_PART = r"(?:[A-Za-z0-9_-]+|\"[^\"\n]*\"|'[^'\n]*')"
_KEY = rf"{_PART}(?:\s*\.\s*{_PART})*"
# A key with a thousand dots costs tomllib seconds and a thousand levels of nesting.
_LONG_KEY = re.compile(rf"(?<![\w-])(?:(?>{_PART})\s*+\.\s*+){{{5 * MAX_DEPTH}}}")
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_KEY})\s*\]")
_PAIR = re.compile(rf"\s*({_KEY})\s*=")


def read_toml(source: SourceText) -> Document:
    check_text(source)
    text = source.text.removeprefix("\ufeff")
    if long_key := _LONG_KEY.search(text):
        place = SourcePlace(source.name, text.count("\n", 0, long_key.start()) + 1)
        raise SkillError(f"is nested deeper than {MAX_DEPTH} levels", place)
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise SkillError(
            f"is nested deeper than {MAX_DEPTH} levels", SourcePlace(source.name)
        ) from None
    except ValueError as error:
        raise _syntax_error(str(error), text, source.name) from None
    problems = Problems()
    places = _key_places(text, source.name)
    document = Document(source.name, data, places)
    plain = _PlainValues(document, problems).value(data, (), 1)
    problems.raise_any()
    return Document(source.name, plain, places)


def _syntax_error(message: str, text: str, source: str) -> SkillError:
    match = _POSITION.search(message)
    if match and match[1]:
        place = SourcePlace(source, int(match[1]), int(match[2]))
    else:
        place = SourcePlace(source, text.count("\n") + 1 if match else None)
    return SkillError(f"is not TOML: {_POSITION.sub('', message)}", place)


def _key_places(text: str, source: str) -> dict[KeyPath, SourcePlace]:
    """The first line of each key; accurate enough for messages, not a TOML parser."""
    places: dict[KeyPath, SourcePlace] = {}
    table: KeyPath = ()
    arrays: dict[KeyPath, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line):
            table = canonical_path(_parts(header[2]))
            if header[1] == "[[":
                arrays[table] = arrays.get(table, -1) + 1
                table = (*table, arrays[table])
            places.setdefault(table, SourcePlace(source, number))
        elif pair := _PAIR.match(line):
            places.setdefault(
                (*table, *canonical_path(_parts(pair[1]))), SourcePlace(source, number)
            )
    return places


def _parts(key: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_PART, key)]


class _PlainValues:
    """Converts values to those that JSON has, within the same limits as YAML."""

    def __init__(self, document: Document, problems: Problems) -> None:
        self.document = document
        self.problems = problems
        self.nodes = 0

    def value(self, value: Any, at: KeyPath, depth: int) -> Any:
        self.nodes += 1
        place = self.document.place(at)
        if depth > MAX_DEPTH:
            raise SkillError(f"is nested deeper than {MAX_DEPTH} levels", place)
        if self.nodes > MAX_NODES:
            raise SkillError(f"holds more than {MAX_NODES} values", place)
        if isinstance(value, dict):
            return {key: self.value(item, (*at, key), depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, (*at, i), depth + 1) for i, item in enumerate(value)]
        if problem := scalar_problem(value):
            self.problems.add(place, problem)
        return value.isoformat() if isinstance(value, datetime | date | time) else value
