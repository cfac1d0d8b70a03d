"""Input of secrets from a file, a pipe or a hidden prompt; never from an argument."""

import getpass
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from agents_app.errors import Refused
from agents_app.secrets import VALUE, CredentialField, Name, type_of


def read_values(name: Name, file: str | None) -> dict[str, str]:
    """The values by field; a type with several fields takes a JSON object."""
    fields = type_of(name.type).fields
    if file is None and sys.stdin.isatty():
        return _prompted(name)
    text = _content(Path(file)) if file else _piped()
    return {VALUE: text} if VALUE in fields else _object(name, text, ", ".join(fields))


def _prompted(name: Name) -> dict[str, str]:
    return {
        key: getpass.getpass(_question(name, key, one))
        for key, one in type_of(name.type).fields.items()
    }


def _question(name: Name, key: str, of: CredentialField) -> str:
    what = f"{name}" if key == VALUE else f"{name} {key}"
    return f"{what}: " if of.is_needed else f"{what} (optional): "


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Refused(
            f"{path} is not UTF-8 text: encode it first, for example with base64"
        ) from None


def _piped() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise Refused(
            "the input is not UTF-8 text: encode it first, for example with base64"
        ) from None


def _object(name: Name, text: str, fields: str) -> dict[str, str]:
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    # The message does not repeat the text, which is a secret.
    if not isinstance(values, Mapping) or not all(isinstance(v, str) for v in values.values()):
        raise Refused(f"{name} has several fields: expected a JSON object with the texts {fields}")
    return dict(values)
