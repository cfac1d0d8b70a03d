"""Replaces ${VAR} and ${VAR:-default} in the texts of a herdctl document; pure."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from agents_app.errors import DroverError
from agents_app.skills import KeyPath

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")

Undefined = Callable[[str, KeyPath], None]


class UndefinedVariableError(DroverError):
    """A text refers to a variable that is not set and gives no default."""

    code = "undefined_variable"


def interpolate(
    value: Any, env: Mapping[str, str], at: KeyPath = (), undefined: Undefined | None = None
) -> Any:
    """The value with all references in its texts replaced; other values are unchanged.

    A variable that is set and empty wins over the default. A reference that cannot be replaced is
    passed to `undefined` and left as it is; without `undefined` it raises UndefinedVariableError.
    """
    report = undefined or _refuse
    if isinstance(value, str):
        return _REFERENCE.sub(lambda found: _replacement(found, env, at, report), value)
    if isinstance(value, list):
        return [interpolate(item, env, (*at, i), report) for i, item in enumerate(value)]
    if isinstance(value, dict):
        return {key: interpolate(item, env, (*at, key), report) for key, item in value.items()}
    return value


def interpolate_optional(text: str, env: Mapping[str, str]) -> str:
    """The text with the references replaced that give a default; others stay references."""
    return _REFERENCE.sub(
        lambda found: found[0] if found[2] is None else env.get(found[1], found[2]), text
    )


def variables_in(value: Any) -> frozenset[str]:
    """The names of all variables that the texts of a value refer to."""
    if isinstance(value, str):
        return frozenset(found[1] for found in _REFERENCE.finditer(value))
    inner = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list):
        return frozenset()
    return frozenset().union(*(variables_in(item) for item in inner))


def _replacement(
    found: re.Match[str], env: Mapping[str, str], at: KeyPath, report: Undefined
) -> str:
    name, default = found[1], found[2]
    if name in env:
        return env[name]
    if default is None:
        report(name, at)
        return found[0]
    return default


def _refuse(name: str, at: KeyPath) -> None:
    where = ".".join(map(str, at)) or "the text"
    raise UndefinedVariableError(f"{where}: the variable {name} is not set and has no default")
