"""The fields of a signal, from JSON or from a form, where everything is text; pure."""

import math
import re
from collections.abc import Mapping
from typing import Any

from agents_app.errors import DroverError

Fields = Mapping[str, Any]
_WHOLE = re.compile(r"[0-9]{1,18}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)
_YES, _NO = {"true", "1", "yes", "on"}, {"false", "0", "no", "off", ""}
MOST_IDS = 2000
MAX_ID = 2**63 - 1


class BadField(DroverError):
    """A field is missing, or is not what it must be."""

    code = "invalid"


class TooLong(DroverError):
    """A field has more bytes than are kept."""

    code = "too_large"
    http_status = 413


def text(fields: Fields, name: str, default: str | None = None) -> str:
    value = fields.get(name, default)
    if value is None:
        raise BadField(f"{name}: this field is required")
    if not isinstance(value, str):
        raise BadField(f"{name}: expected text, got {_kind(value)}")
    if "\0" in value:
        raise BadField(f"{name}: the character NUL cannot be stored")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadField(f"{name}: half of a surrogate pair is no character") from None
    return value


def whole(fields: Fields, name: str, low: int, high: int, default: int | None = None) -> int:
    value = fields.get(name, default)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadField(f"{name}: expected a whole number from {low} to {high}")
    return value


def number(
    fields: Fields, name: str, low: float, high: float, default: float | None = None
) -> float | None:
    value = fields.get(name, default)
    if value is None or value == "":
        return default
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadField(f"{name}: expected a number from {low:g} to {high:g}")
    if not math.isfinite(value) or not low <= value <= high:
        raise BadField(f"{name}: expected a number from {low:g} to {high:g}")
    return float(value)


def required_number(fields: Fields, name: str, low: float, high: float) -> float:
    value = number(fields, name, low, high)
    if value is None:
        raise BadField(f"{name}: this field is required")
    return value


def flag(fields: Fields, name: str) -> bool:
    if not is_flag(fields, name):
        raise BadField(f"{name}: expected true or false")
    return str(fields.get(name, False)).lower() in _YES


def is_flag(fields: Fields, name: str) -> bool:
    value = fields.get(name, False)
    return isinstance(value, bool | str | int) and str(value).lower() in _YES | _NO


def call_id(fields: Fields, name: str) -> int:
    """The number of a call; whether there is such a call is for the caller to find out."""
    try:
        return whole(fields, name, 1, MAX_ID)
    except BadField:
        raise BadField(f"{name}: expected a call id") from None


def ids(fields: Fields, name: str) -> list[int]:
    """One or several; in a form `ids` is given once for each."""
    value = fields.get(name)
    several = value if isinstance(value, list) else [] if value is None else [value]
    if not 1 <= len(several) <= MOST_IDS:
        raise BadField(f"{name}: expected 1 to {MOST_IDS} call ids")
    return [call_id({name: each}, name) for each in several]


def only(fields: Fields, *known: str) -> None:
    for name in fields:
        if name not in known:
            what = f"use {', '.join(known)}" if known else "this signal has none"
            raise BadField(f"{str(name)[:80]!r}: unknown field ({what})")


def _kind(value: Any) -> str:
    return {list: "a list", dict: "an object", bool: "true or false"}.get(type(value), "a number")
