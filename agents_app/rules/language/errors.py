"""What can be wrong with a line of the rules, and where; how a line is read lives elsewhere."""

from collections.abc import Mapping
from typing import Any


def placed(error: Mapping[str, Any]) -> str:
    """What is wrong, and where; a file that cannot be read is wrong at no line."""
    place = f"line {error['line']}, column {error['column']}: " if error["line"] else ""
    return f"{place}{error['problem']}"


class RuleError(Exception):
    """One line that is no rule; `code` is for programs, the sentence for people.

    `line` and `column` are counted from 1, as editors do. `raw` is the line, safe in a log, a
    database and a terminal.
    """

    def __init__(
        self, code: str, line: int, column: int, problem: str, expected: str, raw: str
    ) -> None:
        self.code = code
        self.line = line
        self.column = column
        self.problem = problem
        self.expected = expected
        self.raw = raw
        super().__init__(f"line {line}, column {column}: {self.sentence}")

    @property
    def sentence(self) -> str:
        return f"{self.problem} (expected {self.expected})"
