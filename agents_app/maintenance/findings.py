"""What a check says: a verdict, what it is about, and what to do."""

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


Said = Iterator[tuple[str, str, str]]
Check = Callable[[datetime], Said]


def line_of(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
