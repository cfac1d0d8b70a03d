"""What is wrong with the fields of a request, in sentences; pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticCustomError

# Of pydantic's words, those that a person should not have to decipher.
_WORDS = {"missing": "this field is required", "extra_forbidden": "unknown field"}
_SAID = "said"


@dataclass(frozen=True, slots=True)
class Complaint:
    path: str
    message: str
    text: str


def said(text: str) -> PydanticCustomError:
    """A whole sentence: shown as it is, without the field's name before it."""
    return PydanticCustomError(_SAID, "{said}", {"said": text})


def complaints(errors: Iterable[Mapping[str, Any]]) -> list[Complaint]:
    return [_complaint(error) for error in errors]


def _complaint(error: Mapping[str, Any]) -> Complaint:
    path = _path(error["loc"])
    message = _WORDS.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ")
    alone = error["type"] == _SAID or not path
    return Complaint(path, message, message if alone else f"{path}: {message}")


def _path(location: Iterable[str | int]) -> str:
    """Without where it stands in the request and what our function calls the body."""
    where, *parts = [str(part) for part in location]
    if where == "body":
        parts = parts[1:]
    return ".".join(parts)
