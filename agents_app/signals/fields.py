"""The fields of a signal: declared once, read from JSON or from a form, where values are text."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents_app.errors import DroverError

Fields = Mapping[str, Any]
_INTEGER = re.compile(r"[0-9]{1,18}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)
_TRUE, _FALSE = {"true", "1", "yes", "on"}, {"false", "0", "no", "off", ""}
MAX_CALL_IDS = 2000
MAX_CALL_ID = 2**63 - 1
MAX_SECONDS = 86_400
# Missing from a form means the same as empty or null for a number.
_NO_NUMBER = (None, "")


class BadField(DroverError):
    """A field is missing, unknown, or has a value of the wrong type or range."""

    code = "invalid"


class TooLong(DroverError):
    """A field has more bytes than are stored."""

    code = "too_large"
    http_status = 413


@dataclass(frozen=True, slots=True)
class SignalField:
    """One field: `parse(name, value)` returns the value a handler gets, or raises BadField."""

    name: str
    description: str
    schema: Mapping[str, Any]
    parse: Callable[[str, Any], Any]
    required: bool = False
    default: Any = None
    # Values that count as missing.
    empty: tuple[Any, ...] = ()
    # Written freely by the agent: secrets of the run are removed before it is stored.
    free_text: bool = False
    # The mark instead of a secret must leave the text a valid URI.
    is_uri: bool = False

    def read(self, given: Fields) -> Any:
        if self.name in given and given[self.name] not in self.empty:
            return self.parse(self.name, given[self.name])
        if self.required:
            raise BadField(f"{self.name}: this field is required")
        return self.default


def read_fields(declared: Sequence[SignalField], given: Fields) -> dict[str, Any]:
    """The value of every declared field; BadField names the first unknown or invalid one."""
    known = [field.name for field in declared]
    for name in given:
        if name not in known:
            hint = f"use {', '.join(known)}" if known else "this signal has none"
            raise BadField(f"{str(name)[:80]!r}: unknown field ({hint})")
    return {field.name: field.read(given) for field in declared}


# --- kinds of fields ------------------------------------------------------------------------


def text_field(name: str, description: str, **options: Any) -> SignalField:
    return SignalField(name, description, {"type": "string"}, _text, **options)


def uri_field(name: str, description: str, max_length: int) -> SignalField:
    schema = {"type": "string", "maxLength": max_length}
    return SignalField(name, description, schema, _text, required=True, free_text=True, is_uri=True)


def integer_field(
    name: str, description: str, low: int, high: int, default: int | None = None
) -> SignalField:
    def parse(name: str, value: Any) -> int:
        problem = f"expected a whole number from {low} to {high}"
        return _integer(name, value, low, high, problem)

    return SignalField(name, description, {"type": "integer"}, parse, default=default)


def number_field(
    name: str, description: str, low: float, high: float, **options: Any
) -> SignalField:
    def parse(name: str, value: Any) -> float:
        return _number(name, value, low, high)

    return SignalField(name, description, {"type": "number"}, parse, empty=_NO_NUMBER, **options)


def seconds_field(name: str, description: str) -> SignalField:
    def parse(name: str, value: Any) -> float:
        return _number(name, value, 0, MAX_SECONDS)

    schema = {"type": "number", "minimum": 0}
    return SignalField(name, description, schema, parse, empty=_NO_NUMBER)


def boolean_field(name: str, description: str) -> SignalField:
    return SignalField(name, description, {"type": "boolean"}, _boolean, default=False)


def boolean_or_seconds_field(name: str, description: str) -> SignalField:
    def parse(name: str, value: Any) -> bool | float:
        if _is_boolean(value):
            return _boolean(name, value)
        return _number(name, value, 0, MAX_SECONDS)

    schema = {"type": ["boolean", "number"]}
    return SignalField(name, description, schema, parse, default=False, empty=(None,))


def call_id_field(name: str, description: str) -> SignalField:
    return SignalField(name, description, {"type": "integer"}, _call_id, required=True)


def call_ids_field(name: str, description: str) -> SignalField:
    """One or several ids; a form repeats the field for each."""
    items = {"type": "integer"}
    schema = {"type": "array", "items": items, "minItems": 1, "maxItems": MAX_CALL_IDS}
    return SignalField(name, description, schema, _call_ids, required=True)


# --- parsing --------------------------------------------------------------------------------


def _text(name: str, value: Any) -> str:
    if value is None:
        raise BadField(f"{name}: this field is required")
    if not isinstance(value, str):
        raise BadField(f"{name}: expected text, got {_type_name(value)}")
    if "\0" in value:
        raise BadField(f"{name}: the character NUL cannot be stored")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadField(f"{name}: half of a surrogate pair is no character") from None
    return value


def _integer(name: str, value: Any, low: int, high: int, problem: str) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadField(f"{name}: {problem}")
    return value


def _number(name: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadField(f"{name}: expected a number from {low:g} to {high:g}")
    if not math.isfinite(value) or not low <= value <= high:
        raise BadField(f"{name}: expected a number from {low:g} to {high:g}")
    return float(value)


def _boolean(name: str, value: Any) -> bool:
    if not _is_boolean(value):
        raise BadField(f"{name}: expected true or false")
    return str(value).lower() in _TRUE


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool | str | int) and str(value).lower() in _TRUE | _FALSE


def _call_id(name: str, value: Any) -> int:
    return _integer(name, value, 1, MAX_CALL_ID, "expected a call id")


def _call_ids(name: str, value: Any) -> list[int]:
    values = value if isinstance(value, list) else [value]
    if not 1 <= len(values) <= MAX_CALL_IDS:
        raise BadField(f"{name}: expected 1 to {MAX_CALL_IDS} call ids")
    return [_call_id(name, each) for each in values]


def _type_name(value: Any) -> str:
    return {list: "a list", dict: "an object", bool: "true or false"}.get(type(value), "a number")
