"""Reads YAML as plain values with the position of each key; refuses tags.

Anchors and aliases are refused, too, unless a format has them.
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from agents_app.skills.document import (
    MAX_DEPTH,
    MAX_NODES,
    Document,
    KeyPath,
    canonical_path,
    scalar_problem,
)
from agents_app.skills.errors import Problems, SkillError, SourcePlace

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]{1,18}|0x[0-9a-fA-F]{1,15}|0o[0-7]{1,20}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_MUST_BE_QUOTED = tuple("*@`%&!")
_SPECIAL_FLOAT = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def plain_value(text: str) -> Any:
    """The value of a scalar in YAML 1.2: `yes`, `12:30` and `2026-01-01` are text."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text):
        return int(text, 0 if text[:2] in {"0x", "0o"} else 10)
    if _FLOAT.fullmatch(text):
        return float(text)
    return float(text.replace(".", "")) if _SPECIAL_FLOAT.fullmatch(text) else text


def read_yaml(
    text: str, source: str, first_line: int = 1, *, aliases: bool = False
) -> tuple[Any, Document]:
    """The root value, and a document with positions; the text begins at `first_line`."""
    reader = _Reader(source, first_line, aliases=aliases)
    try:
        root = reader.read(iter(yaml.parse(text, Loader=_LOADER)))
    except yaml.MarkedYAMLError as error:
        mark, reason = explain(error, text)
        reader.problems.add(reader.mark(mark), reason, column=True)
    except (yaml.YAMLError, UnicodeError) as error:
        reader.problems.add(
            SourcePlace(source, first_line), f"is not YAML: {' '.join(str(error).split())}"
        )
    reader.problems.raise_any()
    data = root if isinstance(root, dict) else {}
    return root, Document(source, data, reader.places)


def explain(error: yaml.MarkedYAMLError, text: str) -> tuple[yaml.Mark | None, str]:
    """The position and the message of a syntax error; common mistakes get a remedy."""
    mark, start = error.problem_mark, error.context_mark or error.problem_mark
    said = " ".join(part for part in (error.context, error.problem) if part)
    rest = _rest_of_line(text, start)
    if rest[:1] in _MUST_BE_QUOTED:
        value = rest.partition(" #")[0].rstrip(" ,]}\r")
        return start, f'a value that begins with {rest[0]} must be quoted: write "{value[:80]}"'
    if _rest_of_line(text, mark).startswith("\t"):
        return mark, "a tab cannot indent YAML; use spaces"
    if "end of stream" in said:
        return start, "is not YAML: this quote is not closed"
    if "mapping values are not allowed" in said:
        return mark, "is not YAML: a value that contains ': ' must be quoted"
    return mark, f"is not YAML: {said}"


def _rest_of_line(text: str, mark: yaml.Mark | None) -> str:
    lines = text.split("\n")
    return lines[mark.line][mark.column :] if mark and mark.line < len(lines) else ""


class _Reader:
    """One pass over the events of the parser, so that limits apply before values are built."""

    def __init__(self, source: str, first_line: int, *, aliases: bool = False) -> None:
        self.source = source
        self.first_line = first_line
        self.aliases = aliases
        # The value of each anchor, and how many values it contains.
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.nodes = 0
        self.places: dict[KeyPath, SourcePlace] = {}
        self.problems = Problems()

    def mark(self, mark: Any) -> SourcePlace:
        if mark is None:
            return SourcePlace(self.source, self.first_line)
        return SourcePlace(self.source, self.first_line + mark.line, mark.column + 1)

    def read(self, events: Iterator[Event]) -> Any:
        self.events = events
        roots: list[Any] = []
        for event in events:
            if not isinstance(event, DocumentStartEvent):
                continue
            if roots:
                problem = "a second YAML document starts here; only one is allowed"
                self.problems.add(self.mark(event.start_mark), problem)
            roots.append(self._node(next(events), (), 1))
        return roots[0] if roots else None

    def _node(self, event: Event, at: KeyPath, depth: int) -> Any:
        self._check_limits(event, depth)
        if isinstance(event, AliasEvent):
            return self._aliased(event)
        before = self.nodes
        value = self._value(event, at, depth)
        if isinstance(event, NodeEvent) and event.anchor:
            self.anchors[event.anchor] = value, self.nodes - before
        return value

    def _value(self, event: Event, at: KeyPath, depth: int) -> Any:
        if isinstance(event, SequenceStartEvent):
            return self._sequence(at, depth)
        if isinstance(event, MappingStartEvent):
            return self._mapping(at, depth)
        return self._scalar(event) if isinstance(event, ScalarEvent) else None

    def _aliased(self, event: AliasEvent) -> Any:
        """The value of the anchor; it counts again, so that few lines cannot mean a million."""
        if not self.aliases:
            return None  # reported
        place = self.mark(event.start_mark)
        anchor = event.anchor or ""
        if anchor not in self.anchors:
            self.problems.add(place, f"there is no value &{anchor} above this line")
            return None
        value, size = self.anchors[anchor]
        self.nodes += size
        self._check_size(place)
        return value

    def _check_size(self, place: SourcePlace) -> None:
        if self.nodes > MAX_NODES:
            raise SkillError(f"holds more than {MAX_NODES} values", place)

    def _check_limits(self, event: Event, depth: int) -> None:
        self.nodes += 1
        place = self.mark(event.start_mark)
        if depth > MAX_DEPTH:
            raise SkillError(f"is nested deeper than {MAX_DEPTH} levels", place)
        self._check_size(place)
        if not self.aliases:
            self._refuse_anchors(event, place)
        tag = getattr(event, "tag", None)
        if tag:
            shorthand = tag.replace("tag:yaml.org,2002:", "!!")
            self.problems.add(place, f"the tag {shorthand} is not allowed; leave it out")

    def _refuse_anchors(self, event: Event, place: SourcePlace) -> None:
        if isinstance(event, AliasEvent):
            self.problems.add(place, f"the alias *{event.anchor} is not allowed; repeat the value")
        elif isinstance(event, NodeEvent) and event.anchor:
            self.problems.add(place, f"the anchor &{event.anchor} is not allowed; leave it out")

    def _scalar(self, event: ScalarEvent) -> Any:
        value = plain_value(event.value) if event.implicit[0] else event.value
        problem = scalar_problem(value)
        if problem:
            self.problems.add(self.mark(event.start_mark), problem)
        return value

    def _sequence(self, at: KeyPath, depth: int) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self.events), CollectionEndEvent | StreamEndEvent):
            here = (*at, len(items))
            self.places[canonical_path(here)] = self.mark(event.start_mark)
            items.append(self._node(event, here, depth + 1))
        return items

    def _mapping(self, at: KeyPath, depth: int) -> dict[str, Any]:
        table: dict[str, Any] = {}
        lines: dict[str, int | None] = {}
        while not isinstance(event := next(self.events), CollectionEndEvent | StreamEndEvent):
            place = self.mark(event.start_mark)
            key = self._key(event, at, depth, place)
            if key in table:
                problem = f"duplicate key {key!r}; first used on line {lines[key]}"
                self.problems.add(place, problem)
            here = (*at, key)
            self.places.setdefault(canonical_path(here), place)
            lines.setdefault(key, place.line)
            table[key] = self._node(next(self.events), here, depth + 1)
        return table

    def _key(self, event: Event, at: KeyPath, depth: int, place: SourcePlace) -> str:
        """The key as text: `on`, `1` and `null` are not converted."""
        self._node(event, at, depth + 1)
        if isinstance(event, ScalarEvent):
            return str(event.value)
        self.problems.add(place, "a key must be plain text")
        return f"line {place.line}"
