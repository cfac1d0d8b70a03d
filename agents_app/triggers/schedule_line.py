"""Finds and parses `/schedule` lines in the output of an agent."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from agents_app.errors import TriggerParseError
from agents_app.triggers.when import check_phrase
from agents_app.triggers.words import WHITESPACE, WORD, excerpt

Op = Literal["create", "list", "cancel", "pause", "resume"]
Code = Literal[
    "not_a_command",
    "usage",
    "not_found",
    "empty_phrase",
    "empty_message",
    "missing_separator",
    "bad_phrase",
]

COMMAND = "/schedule"
USAGE = f"{COMMAND} PHRASE: MESSAGE | list | cancel N | pause N | resume N"

_QUOTES = ('"', "'")
_ID = re.compile(r"#?([0-9]+)")
# Longer ids do not fit into a 64-bit column.
_MAX_ID_DIGITS = 18
# A phrase has at most three colons (seconds and an offset); the next one is the separator.
_MAX_COLONS = 4
_TIME_COLON = re.compile(r"[0-9]:[0-9]")
_FENCE = re.compile(r" {0,3}(?P<marks>`{3,}|~{3,})(?P<info>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    """`phrase`, `message` and `agent` are set for `create`, `id` for the other operations."""

    op: Op
    phrase: str = ""
    message: str = ""
    agent: str = ""
    id: int | None = None


@dataclass(frozen=True, slots=True)
class ScheduleLineError:
    """`accepted` lists the accepted phrases if the phrase is invalid."""

    code: Code
    message: str
    accepted: str = ""


class ScheduleLineFinder:
    """Recognizes schedule lines in an output that is fed line by line."""

    def __init__(self) -> None:
        self._fence = ""

    def schedule_line_in(self, line: str) -> str | None:
        marks = _FENCE.fullmatch(line.rstrip(WHITESPACE))
        if self._fence:
            if marks and marks["marks"].startswith(self._fence) and not marks["info"]:
                self._fence = ""
        elif marks and not (marks["marks"][0] == "`" and "`" in marks["info"]):
            self._fence = marks["marks"]
        elif _body(line) is not None:
            return line.rstrip(WHITESPACE)
        return None


def find_schedule_lines(output_text: str) -> list[str]:
    """The schedule lines of an output, which are outside fenced blocks."""
    finder = ScheduleLineFinder()
    found = (finder.schedule_line_in(line) for line in output_text.split("\n"))
    return [line for line in found if line is not None]


def parse_schedule_line(
    text: str, caller: str, exists: Callable[[int], bool]
) -> ScheduleLine | ScheduleLineError:
    """Parse a line; `exists` tells whether the caller's tenant has the schedule."""
    body = _body(text)
    if body is None:
        return ScheduleLineError("not_a_command", f"a line that begins with {COMMAND} was expected")
    word, argument = _first_word(body)
    match word.lower():
        case "list" if not argument:
            return ScheduleLine("list")
        case "cancel" | "pause" | "resume" as op:
            return _change_schedule(op, argument, exists)
        case "" | "list":
            return ScheduleLineError("usage", f"write {USAGE}")
    return _create(body, caller)


def _body(text: str) -> str | None:
    """The text after the command, or None if the text is not a command."""
    rest = text.removeprefix(COMMAND)
    if rest == text or (rest and rest[0] not in WHITESPACE):
        return None
    return rest.strip(WHITESPACE)


def _first_word(body: str) -> tuple[str, str]:
    found = WORD.match(body)
    return (found[0], body[found.end() :].strip(WHITESPACE)) if found else ("", "")


def _change_schedule(
    op: Literal["cancel", "pause", "resume"], argument: str, exists: Callable[[int], bool]
) -> ScheduleLine | ScheduleLineError:
    found = _ID.fullmatch(argument)
    digits = found[1].lstrip("0") if found else ""
    if not digits:
        return ScheduleLineError("usage", f"write {COMMAND} {op} and the number of a schedule")
    if len(digits) > _MAX_ID_DIGITS or not exists(int(digits)):
        return ScheduleLineError("not_found", f"there is no schedule #{excerpt(digits)}")
    return ScheduleLine(op, id=int(digits))


def _create(body: str, caller: str) -> ScheduleLine | ScheduleLineError:
    colons = [found.start() for found in islice(re.finditer(":", body), _MAX_COLONS)]
    readable = [colon for colon in colons if _problem(_phrase(body[:colon])) is None]
    if not readable:
        return _create_error(body, colons)
    # The longest valid phrase: 12:00:30 is a time with seconds and not a message "30".
    phrase, message = _phrase(body[: readable[-1]]), body[readable[-1] + 1 :].strip(WHITESPACE)
    if not message:
        return ScheduleLineError(
            "empty_message", f"the message is empty: {COMMAND} {phrase}: MESSAGE"
        )
    return ScheduleLine("create", phrase=phrase, message=message, agent=caller)


def _create_error(body: str, colons: list[int]) -> ScheduleLineError:
    separators = [colon for colon in colons if not _TIME_COLON.match(body, max(colon - 1, 0))]
    if not separators:
        return ScheduleLineError(
            "missing_separator",
            f"put a colon between phrase and message: {COMMAND} PHRASE: MESSAGE",
        )
    phrase = _phrase(body[: separators[0]])
    if not phrase:
        return ScheduleLineError("empty_phrase", f"the phrase is empty: {COMMAND} PHRASE: MESSAGE")
    problem = _problem(phrase)
    assert problem is not None  # checked by the caller
    return ScheduleLineError("bad_phrase", str(problem), problem.accepted)


def _phrase(text: str) -> str:
    phrase = text.strip(WHITESPACE)
    if len(phrase) > 1 and phrase[0] in _QUOTES and phrase[-1] == phrase[0]:
        return phrase[1:-1].strip(WHITESPACE)
    return phrase


def _problem(phrase: str) -> TriggerParseError | None:
    try:
        check_phrase(phrase)
    except TriggerParseError as error:
        return error
    return None
