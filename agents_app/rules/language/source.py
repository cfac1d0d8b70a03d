"""A file of rules as it is on disk, and what is wrong with it as plain values."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agents_app.rules.language.errors import RuleError
from agents_app.rules.language.parse import RulesFile, parse_file

FILE_NAME = "scheduler.rules"
MOST_BYTES = 1_000_000
# Of a file of something else every line is wrong, and nobody reads them all.
MOST_ERRORS = 100
_OF_AN_ERROR = ("code", "line", "column", "problem", "expected", "raw")


@dataclass(frozen=True, slots=True)
class RulesSource:
    """The file as it is on disk; no fingerprint: there is none."""

    text: str = ""
    fingerprint: str = ""
    # Why it cannot be read at all.
    problem: str = ""

    @property
    def is_blank(self) -> bool:
        """Nothing stands in it, or it is not there: so is a file that is just being saved."""
        return not self.problem and not self.text.strip()

    @property
    def errors(self) -> list[dict[str, Any]]:
        """A file that cannot be read is wrong as a whole, at no line."""
        if self.problem:
            whole = ("unreadable", 0, 0, self.problem, "a text file of rules", "")
            return [dict(zip(_OF_AN_ERROR, whole, strict=True))]
        return described(parsed(self).errors)


def read_source(path: Path) -> RulesSource:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return RulesSource()
    except OSError as error:
        # Of the error alone: when it can be read again, that is a change.
        return _unreadable(f"the file cannot be read: {error.strerror}")
    return source_of_text(data)


def source_of_text(data: bytes) -> RulesSource:
    if len(data) > MOST_BYTES:
        return _unreadable(f"the file has more than {MOST_BYTES:,} bytes")
    # A byte that is no text is wrong in its line, and the other lines are as good as ever.
    text = data.decode("utf-8-sig", "surrogateescape")
    return RulesSource(text, hashlib.sha256(data).hexdigest())


@lru_cache(maxsize=4)
def parsed(source: RulesSource) -> RulesFile:
    return parse_file(source.text)


def described(errors: Sequence[RuleError]) -> list[dict[str, Any]]:
    first = [
        {name: getattr(error, name) for name in _OF_AN_ERROR} for error in errors[:MOST_ERRORS]
    ]
    if len(errors) <= MOST_ERRORS:
        return first
    problem = f"{len(errors) - MOST_ERRORS} more lines, from this one on, are no rules"
    rest = ("more_errors", errors[MOST_ERRORS].line, 1, problem, "rules", "")
    return [*first, dict(zip(_OF_AN_ERROR, rest, strict=True))]


def _unreadable(problem: str) -> RulesSource:
    return RulesSource(fingerprint=hashlib.sha256(problem.encode()).hexdigest(), problem=problem)
