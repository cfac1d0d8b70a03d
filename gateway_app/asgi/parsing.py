"""Reads JSON as strictly as the standard has it."""

import json
from typing import Any, NoReturn


def strict_json(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse, object_pairs_hook=_object)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("duplicate key")
    return found
