"""Parses one field of a cron expression to the values that it allows."""

import re
from dataclasses import dataclass

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

_TERM = re.compile(r"(?P<low>\*|[0-9]+|[a-z]{3})(?:-(?P<high>[0-9]+|[a-z]{3}))?(?:/(?P<step>.*))?")
_NTH_WEEKDAY = re.compile(r"(?P<day>[0-9]+|[a-z]{3})#(?P<nth>[0-9]+)")
_LAST_WEEKDAY = re.compile(r"l(?P<after>[0-9]+|[a-z]{3})|(?P<before>[0-9]+|[a-z]{3})l")


class BadFieldError(Exception):
    """The problem of a field; the parser of the expression adds its name and position."""


@dataclass(frozen=True, slots=True)
class CronField:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    example: str = ""

    @property
    def bounds(self) -> str:
        return f"{self.low}-{self.high}"

    @property
    def last(self) -> int:
        """The greatest value that is not another spelling of a smaller one."""
        return 6 if self.name == DAY_OF_WEEK else self.high


DAY_OF_MONTH = "day-of-month"
DAY_OF_WEEK = "day-of-week"
FIELDS = (
    CronField("minute", 0, 59, example="30 * * * * (every hour at :30)"),
    CronField("hour", 0, 23, example="0 9 * * * (every day at 09:00)"),
    CronField(DAY_OF_MONTH, 1, 31, example="0 0 1 * * (the first of every month)"),
    CronField("month", 1, 12, MONTHS, example="0 0 1 6 * (1 June at midnight)"),
    CronField(DAY_OF_WEEK, 0, 7, WEEKDAYS, example="0 9 * * 1-5 (weekdays at 09:00)"),
)


@dataclass(frozen=True, slots=True)
class Values:
    """The values that a field allows: numbers, and days that depend on the calendar."""

    plain: frozenset[int] = frozenset()
    last_day: bool = False
    nth_weekdays: frozenset[tuple[int, int]] = frozenset()
    last_weekdays: frozenset[int] = frozenset()
    unrestricted: bool = False

    def __or__(self, other: "Values") -> "Values":
        return Values(
            self.plain | other.plain,
            self.last_day or other.last_day,
            self.nth_weekdays | other.nth_weekdays,
            self.last_weekdays | other.last_weekdays,
            self.unrestricted or other.unrestricted,
        )


def parse_field(field: CronField, text: str) -> Values:
    if not text.isascii():
        raise BadFieldError("has a character that is not ASCII")
    if text == "?" and field.name in (DAY_OF_MONTH, DAY_OF_WEEK):
        return _every(field)
    values = Values()
    for term in text.lower().split(","):
        if not term:
            raise BadFieldError("has an empty item in its list")
        values |= _parse_term(field, term)
    return values


def _parse_term(field: CronField, term: str) -> Values:
    if field.name == DAY_OF_MONTH and term == "l":
        return Values(last_day=True)
    if field.name == DAY_OF_WEEK:
        if nth := _NTH_WEEKDAY.fullmatch(term):
            return Values(nth_weekdays=frozenset({_nth_weekday(field, nth)}))
        if last := _LAST_WEEKDAY.fullmatch(term):
            day = _value(field, last["after"] or last["before"])
            return Values(last_weekdays=frozenset({day % 7}))
        if term == "l":
            raise BadFieldError('needs a weekday beside L: write "5L" for the last Friday')
    return _parse_range(field, term)


def _parse_range(field: CronField, term: str) -> Values:
    found = _TERM.fullmatch(term)
    if found is None or (found["low"] == "*" and found["high"]):
        raise BadFieldError(f"cannot be read at {term!r}: {_hint(field)}")
    step = _step(field, found["step"])
    if found["low"] == "*":
        return _every(field) if step == 1 else _plain(field, field.low, field.last, step)
    low = _value(field, found["low"])
    if found["high"]:
        high = _range_end(field, low, found["high"])
        if low > high:
            raise BadFieldError(
                f"has the range {term!r} backwards: split it into two, as in a-b,c-d"
            )
    else:
        high = low if found["step"] is None else field.last
    return _plain(field, low, max(low, high), step)


def _every(field: CronField) -> Values:
    return Values(frozenset(range(field.low, field.last + 1)), unrestricted=True)


def _plain(field: CronField, low: int, high: int, step: int) -> Values:
    values = range(low, high + 1, step)
    return Values(frozenset(v % 7 if field.name == DAY_OF_WEEK else v for v in values))


def _value(field: CronField, text: str) -> int:
    if text in field.names:
        return field.names.index(text) + field.low
    if not text.isdigit():
        raise BadFieldError(f"cannot be read at {text!r}: {_hint(field)}")
    if not field.low <= int(text) <= field.high:
        raise BadFieldError(f"must be {field.bounds}, not {text}")
    return int(text)


def _range_end(field: CronField, low: int, text: str) -> int:
    # Sunday is 0 at the start of a range and 7 at its end: mon-sun is the whole week.
    if text == "sun" and low > 0:
        return 7
    return _value(field, text)


def _step(field: CronField, text: str | None) -> int:
    if text is None:
        return 1
    if not text.isdigit() or int(text) == 0:
        raise BadFieldError(f"has the step {text!r}: a step is a whole number of at least 1")
    size = field.last - field.low + 1
    if int(text) > size:
        # "*/90" would silently mean "every hour".
        raise BadFieldError(
            f"has the step {text}, and there are only {size} values to step through"
        )
    return int(text)


def _nth_weekday(field: CronField, found: re.Match[str]) -> tuple[int, int]:
    if not 1 <= int(found["nth"]) <= 5:
        raise BadFieldError(f"asks for weekday number {found['nth']} of a month: # takes 1-5")
    return _value(field, found["day"]) % 7, int(found["nth"])


def _hint(field: CronField) -> str:
    names = f" or {field.names[0].upper()}-{field.names[-1].upper()}" if field.names else ""
    return f"use {field.bounds}{names}, lists, ranges and steps"
