"""Tables of a file turned into specs: spellings folded, layers merged, values checked."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from agents_app.names import canonical, unknown_field
from agents_app.skills.document import At, Document
from agents_app.skills.errors import Problems

T = TypeVar("T")

# Filters stand beside their source in the file; pydantic marks a bad key of a table with [key].
_NOT_WRITTEN = {"filters", "[key]"}
_SAID = {
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
    """One file's say, and where to complain about it."""

    document: Document
    problems: Problems

    def complain(self, at: At, reason: str) -> None:
        self.problems.add(self.document.place(at), f"{shown(at)}: {reason}")


def written(part: str | int) -> str | int:
    """The name in files: spans carry `_seconds` in specs only."""
    return part.removesuffix("_seconds") if isinstance(part, str) else part


def shown(at: At) -> str:
    """`webhooks.1.source`: people count from one."""
    return ".".join(str(part + 1 if isinstance(part, int) else part) for part in at)


def file_fields(spec: type) -> dict[str, str]:
    """Each name a file may use, and the spec's field it fills."""
    assert is_dataclass(spec)
    return {str(written(field.name)): field.name for field in fields(spec)}


def fold(table: Any, known: Mapping[str, str], layer: Layer, at: At = ()) -> dict[str, Any]:
    """The table in the spec's spelling; what is unknown or given twice is a problem."""
    if not isinstance(table, dict):
        layer.complain(at, f"must be a table, not {excerpt(table)}")
        return {}
    folded: dict[str, Any] = {}
    for key, value in table.items():
        field = known.get(canonical(key))
        if field is None:
            layer.complain((*at, key), unknown_field(key, known))
        elif field in folded:
            layer.complain((*at, key), "is given twice, in two spellings; keep one")
        elif value is not None:  # `key:` with nothing behind it means: not given
            folded[field] = value
    return folded


def fold_nested(table: dict[str, Any], spec: type, layer: Layer) -> dict[str, Any]:
    """The same for tables within the table, such as `runtime`."""
    kinds = get_type_hints(spec)
    return {
        name: fold(value, file_fields(kinds[name]), layer, (name,))
        if is_dataclass(kinds.get(name))
        else value
        for name, value in table.items()
    }


def merge(below: Document, above: Document) -> Document:
    """The upper layer wins; tables are merged by key, one level deep, everything else replaced."""
    data = dict(below.data)
    for key, value in above.data.items():
        old = data.get(key)
        tables = isinstance(old, dict) and isinstance(value, dict)
        data[key] = old | value if tables else value
    return Document(below.source, data, {**below.places, **above.places})


_adapters: dict[type, TypeAdapter[Any]] = {}


def build(spec: type[T], table: dict[str, Any], layer: Layer, at: At = ()) -> T | None:
    """The spec, or None and every problem of the table."""
    if spec not in _adapters:
        _adapters[spec] = TypeAdapter(spec)
    try:
        built: T = _adapters[spec].validate_python(table)
        return built
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            loc = (written(part) for part in detail["loc"] if part not in _NOT_WRITTEN)
            layer.complain((*at, *loc), _explain(detail))
        return None


def _explain(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    match detail["type"]:
        case "value_error":
            return str(context["error"])
        case "missing":
            return _SAID["missing"]
        case "greater_than_equal":
            return f"must be at least {context['ge']}, not {excerpt(detail['input'])}"
        case "less_than_equal":
            return f"must be at most {context['le']}, not {excerpt(detail['input'])}"
        case "literal_error":
            return f"must be {context['expected']}, not {excerpt(detail['input'])}"
    said = _SAID.get(detail["type"]) or detail["msg"].replace("Input should be", "must be")
    quote = "; put it in quotes" if said == "must be text" and _is_scalar(detail["input"]) else ""
    return f"{said}, not {excerpt(detail['input'])}{quote}"


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
