"""The result of a check of doctor: a verdict, what was found, and what to do."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

OK, WARNING, WRONG = "ok", "warning", "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    verdict: str
    detail: str
    advice: str = ""


# (verdict, detail, advice) of each finding.
CheckResults = Iterator[tuple[str, str, str]]
Check = Callable[[datetime], CheckResults]


def one_line(error: Exception) -> str:
    """The error's message without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__
