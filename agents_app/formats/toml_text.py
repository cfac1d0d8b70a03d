"""Writes the config.toml of an imported agent; Python's standard library only reads TOML."""

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def toml_table(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    """The table as TOML: plain values first, then tables with their headers."""
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    nested = {key: value for key, value in table.items() if isinstance(value, Mapping) and value}
    blocks = ["".join(f"{_key(key)} = {_value(value)}\n" for key, value in plain.items())]
    if path and plain:
        blocks = [f"[{'.'.join(map(_key, path))}]\n{blocks[0]}"]
    blocks += [toml_table(value, (*path, key)) for key, value in nested.items()]
    return "\n".join(block for block in blocks if block)


def quoted(text: str) -> str:
    """The text in double quotes, valid in TOML and in YAML."""
    # JSON escapes the same characters, except some that YAML refuses or reads as line ends.
    plain = json.dumps(text, ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", plain)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else quoted(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Mapping):
        pairs = (f"{_key(key)} = {_value(item)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    return quoted(str(value))
