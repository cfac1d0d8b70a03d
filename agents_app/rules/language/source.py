"""The rules file on disk, and its errors as plain values that can be stored."""

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agents_app.rules.language.line_reader import RuleError
from agents_app.rules.language.parse import RulesFile, parse_file

FILE_NAME = "scheduler.rules"
# Where Metateam has the file; read if the project has no other.
CREW_DIRECTORY = ".crew"
MAX_FILE_BYTES = 1_000_000
# In a file that contains something else than rules, every line is an error.
MAX_ERRORS = 100
_ERROR_FIELDS = ("code", "line", "column", "problem", "expected", "raw")


@dataclass(frozen=True, slots=True)
class RulesSource:
    """The content of the file; without a fingerprint there is no file."""

    text: str = ""
    fingerprint: str = ""
    # Why the whole file cannot be read.
    problem: str = ""

    @property
    def is_blank(self) -> bool:
        """The file is empty or missing, which it may be for a moment while an editor saves it."""
        return not self.problem and not self.text.strip()

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The errors by line; a file that cannot be read has one error, at line 0."""
        if self.problem:
            whole = ("unreadable", 0, 0, self.problem, "a text file of rules", "")
            return [dict(zip(_ERROR_FIELDS, whole, strict=True))]
        return errors_as_dicts(parse_source(self).errors)


def rules_file(project: Path) -> Path:
    """The rules file of a project, which need not exist."""
    own, of_crew = project / FILE_NAME, project / CREW_DIRECTORY / FILE_NAME
    return of_crew if of_crew.is_file() and not own.exists() else own


def rules_file_label(project: Path) -> str:
    """The name of the rules file in messages: its path below the project."""
    return rules_file(project).relative_to(project).as_posix()


def read_project_rules(project: Path) -> RulesSource:
    """The rules of a project; a file that is a link out of the project is not read."""
    path = rules_file(project)
    try:
        inside = path.resolve().is_relative_to(project.resolve())
    except (OSError, RuntimeError):  # RuntimeError: a loop, in Python 3.11 and 3.12
        inside = False
    if not inside:
        return _unreadable("the file is a symlink out of the project: copy the file instead")
    return read_source(path)


def read_source(path: Path) -> RulesSource:
    try:
        data = _read_regular(path)
    except FileNotFoundError:
        return RulesSource()
    except OSError as error:
        # The fingerprint is that of the error, so a file that becomes readable again has changed.
        return _unreadable(f"the file cannot be read: {error.strerror}")
    return source_of_text(data)


def _read_regular(path: Path) -> bytes:
    """The beginning of the file; raises an OSError for a file that is not regular."""
    # O_NONBLOCK: opening a FIFO must not wait for a writer.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(0, "it is not a regular file")
        return file.read(MAX_FILE_BYTES + 1)


def source_of_text(data: bytes) -> RulesSource:
    if len(data) > MAX_FILE_BYTES:
        return _unreadable(f"the file has more than {MAX_FILE_BYTES:,} bytes")
    # A byte that is not UTF-8 makes its own line invalid and leaves the others valid.
    text = data.decode("utf-8-sig", "surrogateescape")
    return RulesSource(text, hashlib.sha256(data).hexdigest())


@lru_cache(maxsize=4)
def parse_source(source: RulesSource) -> RulesFile:
    return parse_file(source.text)


def problem_with_position(error: Mapping[str, Any]) -> str:
    """The problem after its line and column; an error of the whole file has neither."""
    position = f"line {error['line']}, column {error['column']}: " if error["line"] else ""
    return f"{position}{error['problem']}"


def errors_as_dicts(errors: Sequence[RuleError]) -> list[dict[str, Any]]:
    first = [
        {name: getattr(error, name) for name in _ERROR_FIELDS} for error in errors[:MAX_ERRORS]
    ]
    if len(errors) <= MAX_ERRORS:
        return first
    problem = f"{len(errors) - MAX_ERRORS} more invalid lines, from this one on"
    rest = ("more_errors", errors[MAX_ERRORS].line, 1, problem, "rules", "")
    return [*first, dict(zip(_ERROR_FIELDS, rest, strict=True))]


def _unreadable(problem: str) -> RulesSource:
    return RulesSource(fingerprint=hashlib.sha256(problem.encode()).hexdigest(), problem=problem)
