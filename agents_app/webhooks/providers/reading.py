"""Reads values from untrusted bodies; no function raises an error for any input."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

MAX_TEXT = 4000
# PostgreSQL cannot store NUL, UTF-8 cannot encode lone surrogates, and terminals execute the other
# control characters.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class Unparseable:
    """The body is not JSON, or is ambiguous JSON; `reason` is for people."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


def read_json(body: bytes) -> Any | Unparseable:
    """The value, or the reason why the body is refused.

    Ambiguous JSON is refused: an agent could read another value than the filters."""
    try:
        return json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except RecursionError:
        return Unparseable("nested too deeply")
    except MemoryError:
        return Unparseable("too large")
    except ValueError as error:  # invalid UTF-8, invalid JSON, a number with thousands of digits
        return Unparseable(printable(str(error))[:200])


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("duplicate key")
    return table


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not valid in JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def printable(text: str) -> str:
    return _UNPRINTABLE.sub("", text)


def cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "..."


def dig(value: Any, *keys: str) -> Any:
    """The value at this path of keys, or None if there is none."""
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def text(value: Any, *keys: str) -> str | None:
    """The text at this path, shortened to MAX_TEXT; None if it is empty or not a text."""
    found = dig(value, *keys)
    if not isinstance(found, str):
        return None
    return cut(printable(found)) or None


def first(*texts: str | None) -> str | None:
    return next((found for found in texts if found), None)


def whole(value: Any, *keys: str) -> int | None:
    found = dig(value, *keys)
    fits = isinstance(found, int) and not isinstance(found, bool) and abs(found) < 2**63
    return found if fits else None


def instant(value: Any, *keys: str) -> datetime | None:
    """A time in ISO 8601 with its zone; None if it is anything else."""
    try:
        found = datetime.fromisoformat(text(value, *keys) or "")
    except ValueError:
        return None
    return found if found.tzinfo else None


def items(value: Any, *keys: str) -> list[Any]:
    found = dig(value, *keys)
    return found if isinstance(found, list) else []


def texts(values: Iterable[Any], *keys: str) -> tuple[str, ...]:
    return tuple(found for value in values if (found := text(value, *keys)))


def iso(instant: datetime) -> str:
    stamp = instant.astimezone(UTC).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")


def as_text(value: Any) -> str | None:
    """Any value as JSON text, shortened to MAX_TEXT; None if it cannot be written."""
    try:
        written = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError, TypeError):
        return None
    return cut(printable(written))
