"""Reads the objects of a JSON list with their line numbers, as far as the text is valid."""

import json
import re
from collections.abc import Iterator
from typing import Any

from agents_app.formats.report import ReportLine
from agents_app.formats.source_files import is_text

JsonObject = dict[str, Any]
_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[\s,]*")
# The list in an answer of an API, or in an export.
_LIST = re.compile(r'\A\s*\{[^\[\]{}]*"(?:schedules|scheduled_tasks|data|items)"\s*:\s*\[')


def looks_like_json(text: str) -> bool:
    return text.lstrip()[:1] in ("[", "{")


def json_objects(
    file: str, text: str, errors: list[ReportLine]
) -> Iterator[tuple[int, JsonObject]]:
    """The objects of a list, of a list inside an object, or one object after the other."""
    start = len(text) - len(text.lstrip())
    found = _LIST.match(text)
    position, in_list = (found.end(), True) if found else (start, text[start : start + 1] == "[")
    position += in_list and not found
    line, counted = 1, 0
    while True:
        position = _skip(text, position)
        if position >= len(text) or (in_list and text[position] == "]"):
            break
        line, counted = line + text.count("\n", counted, position), position
        try:
            value, position = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError as error:
            why = f"is not JSON: {error.msg} (column {error.colno})"
            errors.append(_error(file, error.lineno, why))
            return
        except (RecursionError, ValueError) as error:  # ValueError: a number with 5,000 digits
            errors.append(_error(file, line, f"cannot be read: {error}"))
            return
        if isinstance(value, dict):
            yield line, value
        else:
            errors.append(_error(file, line, f"expected an object, not {_kind(value)}"))
    if in_list and position >= len(text):
        errors.append(_error(file, text.count("\n") + 1, "is not complete: the list has no end"))


def _skip(text: str, position: int) -> int:
    found = _BETWEEN.match(text, position)
    return found.end() if found else position


def _error(file: str, line: int, why: str) -> ReportLine:
    return ReportLine(file, line, "json", why, "export the schedules again")


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "a list"
    return "null" if value is None else repr(value)[:60]


class JsonFields:
    """Reads the fields of one object; a wrong type is an error, and reads as nothing."""

    def __init__(self, file: str, line: int, data: JsonObject, errors: list[ReportLine]) -> None:
        self.file, self.line, self.data = file, line, data
        self._errors = errors
        self.is_valid = True

    def text(self, *names: str, needed: bool = True) -> str:
        """The first of these fields that is given."""
        for name in names:
            value = self.data.get(name)
            if isinstance(value, str) and not is_text(value):
                self.refuse(name, "contains a character that is not text", "correct the export")
                return ""
            if isinstance(value, str) and value.strip():
                return value
            if value is not None and not isinstance(value, str):
                self.refuse(name, f"must be text, not {_kind(value)}", "correct the export")
                return ""
        if needed:
            self.refuse(names[0], "is missing", "correct the export")
        return ""

    def epoch(self, *names: str) -> float:
        """The first of these fields that is a number above zero; 0 if there is none."""
        for name in names:
            value = self.data.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
                return float(value)
        return 0.0

    def refuse(self, name: str, why: str, advice: str) -> None:
        self.is_valid = False
        self._errors.append(ReportLine(self.file, self.line, name, why, advice))
