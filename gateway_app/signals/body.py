"""Reads the fields of a signal from its body, JSON or a form."""

from typing import Any
from urllib.parse import parse_qs

from gateway_app.asgi import strict_json


class BadBody(Exception):
    """The body is neither a JSON object nor a form."""


def read_fields(content_type: str, raw: bytes) -> dict[str, Any]:
    """The fields; a name that a form repeats has a list of values."""
    try:
        text = raw.decode()
        if content_type.partition(";")[0].strip().lower() == "application/x-www-form-urlencoded":
            found = parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=5000)
            return {n: each if len(each) > 1 else each[0] for n, each in found.items()}
        fields = strict_json(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise BadBody(f"the body is neither JSON nor a form in UTF-8: {error}") from None
    if not isinstance(fields, dict):
        raise BadBody("the body is JSON, but not an object with the signal's fields")
    return fields
