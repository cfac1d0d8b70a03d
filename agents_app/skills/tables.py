"""Turns tables of a file into specs: normalizes keys, merges files, validates values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from agents_app.names import canonical, unknown_field
from agents_app.skills.document import Document, KeyPath
from agents_app.skills.errors import Problems
from agents_app.skills.fields import did_you_mean

T = TypeVar("T")

# Filters are written beside their source; pydantic marks an invalid key of a table with [key].
_NOT_IN_FILES = {"filters", "[key]"}
_QUOTED = re.compile("'([^']*)'")
_MESSAGES = {
    "missing": "is missing",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "mapping_type": "must be a table",
    "dataclass_type": "must be a table",
    "dataclass_exact_type": "must be a table",
}


@dataclass(frozen=True, slots=True)
class Layer:
    """A file's values, and the collection to which errors in them are reported."""

    document: Document
    problems: Problems

    def report(self, at: KeyPath, reason: str) -> None:
        self.problems.add(self.document.place(at), f"{dotted(at)}: {reason}")


def _file_spelling(part: str | int) -> str | int:
    """The name of a field in files, where durations have no suffix `_seconds`."""
    return part.removesuffix("_seconds") if isinstance(part, str) else part


def dotted(at: KeyPath) -> str:
    """`webhooks.1.source`: the path in messages, with indexes counted from 1."""
    return ".".join(str(part + 1 if isinstance(part, int) else part) for part in at)


def file_fields(spec: type) -> dict[str, str]:
    """The names that a file may use, and the field of the spec for each."""
    assert is_dataclass(spec)
    return {str(_file_spelling(field.name)): field.name for field in fields(spec)}


def normalize_table(
    table: Any, known: Mapping[str, str], layer: Layer, at: KeyPath = ()
) -> dict[str, Any]:
    """The table with the field names of the spec; unknown and repeated keys are reported."""
    if not isinstance(table, dict):
        layer.report(at, f"must be a table, not {excerpt(table)}")
        return {}
    normalized: dict[str, Any] = {}
    for key, value in table.items():
        field = known.get(canonical(key))
        if field is None:
            layer.report((*at, key), unknown_field(key, known))
        elif field in normalized:
            layer.report((*at, key), "is given twice, in two spellings; keep one")
        elif value is not None:  # `key:` without a value counts as not given
            normalized[field] = value
    return normalized


def normalize_nested(table: dict[str, Any], spec: type, layer: Layer) -> dict[str, Any]:
    """Normalize the tables within a table, such as `runtime`."""
    nested = _nested_fields(spec)
    return {
        name: normalize_table(value, nested[name], layer, (name,)) if name in nested else value
        for name, value in table.items()
    }


# Reading the annotations takes longer than reading an ordinary file.
@lru_cache(maxsize=64)
def _nested_fields(spec: type) -> dict[str, dict[str, str]]:
    """The names that a file may use in each table within a table of this spec."""
    kinds = get_type_hints(spec)
    return {
        name: file_fields(kind)
        for name, kind in kinds.items()
        if isinstance(kind, type) and is_dataclass(kind)
    }


def merge(below: Document, above: Document) -> Document:
    """Merge two files; `above` wins, and tables are merged by key, one level deep."""
    data = dict(below.data)
    for key, value in above.data.items():
        old = data.get(key)
        tables = isinstance(old, dict) and isinstance(value, dict)
        data[key] = old | value if tables else value
    return Document(below.source, data, {**below.places, **above.places})


_adapters: dict[type, TypeAdapter[Any]] = {}


def build_spec(spec: type[T], table: dict[str, Any], layer: Layer, at: KeyPath = ()) -> T | None:
    """The spec, or None after every error of the table has been reported."""
    if spec not in _adapters:
        _adapters[spec] = TypeAdapter(spec)
    try:
        built: T = _adapters[spec].validate_python(table)
        return built
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            loc = (_file_spelling(part) for part in detail["loc"] if part not in _NOT_IN_FILES)
            layer.report((*at, *loc), _explain(detail))
        return None


def _explain(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    match detail["type"]:
        case "value_error":
            return str(context["error"])
        case "missing":
            return _MESSAGES["missing"]
        case "greater_than_equal":
            return f"must be at least {context['ge']}, not {excerpt(detail['input'])}"
        case "less_than_equal":
            return f"must be at most {context['le']}, not {excerpt(detail['input'])}"
        case "literal_error":
            known = _QUOTED.findall(context["expected"])
            hint = did_you_mean(given, known) if isinstance(given := detail["input"], str) else ""
            return f"must be {context['expected']}, not {excerpt(given)}{hint}"
    problem = _MESSAGES.get(detail["type"]) or detail["msg"].replace("Input should be", "must be")
    needs_quotes = problem == "must be text" and _is_scalar(detail["input"])
    hint = "; put it in quotes" if needs_quotes else ""
    return f"{problem}, not {excerpt(detail['input'])}{hint}"


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float)


def excerpt(value: Any) -> str:
    """A value short enough for a message."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    return "nothing" if value is None else repr(value)[:60]
