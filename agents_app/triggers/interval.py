"""Parses the text of an interval, and computes the next fire of an interval schedule."""

import math
import random
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from agents_app.errors import IntervalParseError
from agents_app.triggers.words import WHITESPACE, excerpt

Anchor = Literal["completion", "start"]
ANCHORS: tuple[Anchor, ...] = get_args(Anchor)

_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# Unit, seconds, and the smallest count for which the unit is used.
_PHRASE_UNITS = (
    ("week", 604_800, 2),
    ("day", 86_400, 2),
    ("hour", 3600, 1),
    ("minute", 60, 1),
    ("second", 1, 1),
)
_MAX_JITTER_PERCENT = 10

_NUMBER, _WORD, _GAP = "[0-9]+", "[a-zA-Z]+", f"[{WHITESPACE}]*"
_INTERVAL = re.compile(f"({_NUMBER}){_GAP}([smhdSMHD])")
# Patterns of invalid texts; the first that matches determines the message.
_PROBLEM_PATTERNS = {
    "empty": re.compile(""),
    "missing_unit": re.compile(_NUMBER),
    "missing_number": re.compile(_WORD),
    "zero": re.compile(f"-?0+{_GAP}{_WORD}"),
    "negative": re.compile(f"-{_NUMBER}{_GAP}{_WORD}"),
    "invalid_unit": re.compile(f"{_NUMBER}{_GAP}{_WORD}"),
    "decimal": re.compile(r".*[0-9]\.[0-9].*", re.DOTALL),
    "invalid_format": re.compile(".*", re.DOTALL),
}
_EXPECTED = 'Expected format: "{number}{unit}"'
_MESSAGES = {
    "empty": f"Interval cannot be empty. {_EXPECTED}",
    "missing_unit": f"Missing time unit. {_EXPECTED}",
    "missing_number": f"Missing number. {_EXPECTED}",
    "zero": "Zero interval is not allowed",
    "negative": "Negative intervals are not allowed",
    "invalid_unit": 'Invalid time unit "%". Valid units are: s, m, h, d',
    "decimal": "Decimal values are not supported",
    "invalid_format": f"Invalid interval format. {_EXPECTED}",
    "too_long": "The interval is too long to be added to a date",
}


@dataclass(frozen=True, slots=True)
class IntervalTrigger:
    """Fires an interval after the last completion, or after the last start as elapsed time."""

    text: str = field(compare=False)
    every: timedelta
    anchor: Anchor = "completion"

    @property
    def expression(self) -> str:
        return _as_duration(self.every) if self.anchor == "completion" else _as_phrase(self.every)


def parse_interval(interval: str) -> int:
    """The milliseconds of a text such as `5m`: a whole number and one of s, m, h, d."""
    text = interval.strip(WHITESPACE)
    found = _INTERVAL.fullmatch(text)
    number = float(found[1]) if found else 0
    if found is None or number == 0:
        raise _error(_problem_kind(text), interval)
    # In floating point, because milliseconds are a JSON number, which is rounded above 2**53.
    milliseconds = number * _UNIT_MS[found[2].lower()]
    if math.isinf(milliseconds):
        raise _error("too_long", interval)
    return int(milliseconds)


def parse_interval_trigger(interval: str) -> IntervalTrigger:
    return IntervalTrigger(interval, _as_timedelta(interval))


def calculate_next_trigger(
    last_completed_at: datetime | None,
    interval: str,
    jitter_percent: float | None = None,
    *,
    now: datetime | None = None,
    rand: float | None = None,
) -> datetime:
    """The last completion plus interval and jitter, never before `now`; `rand` is from 0 to 1.

    For Python code that builds on Drover, `now` and `rand` have defaults: the clock, and a random
    number. Drover itself always passes both.
    """
    now = datetime.now(UTC) if now is None else now
    rand = random.random() if rand is None else rand  # noqa: S311  # jitter, not a secret
    if last_completed_at is None:
        return now
    every = _as_timedelta(interval)
    jitter = _jitter(every, jitter_percent or 0, rand)
    try:
        return max(last_completed_at + every + jitter, now)
    except OverflowError:
        raise _error("too_long", interval) from None


def is_schedule_due(next_trigger: datetime, now: datetime | None = None) -> bool:
    """Whether the time has come; without `now` by the clock, for code that builds on Drover."""
    return next_trigger <= (datetime.now(UTC) if now is None else now)


def _jitter(every: timedelta, percent: float, rand: float) -> timedelta:
    clamped = min(max(percent, 0), _MAX_JITTER_PERCENT)
    every_ms = every // timedelta(milliseconds=1)
    return timedelta(milliseconds=math.floor(rand * (every_ms * clamped) / 100))


def _as_timedelta(interval: str) -> timedelta:
    try:
        return timedelta(milliseconds=parse_interval(interval))
    except OverflowError:
        raise _error("too_long", interval) from None


def _as_duration(every: timedelta) -> str:
    microseconds = every // timedelta(microseconds=1)
    for unit in reversed(_UNIT_MS):
        count, rest = divmod(microseconds, _UNIT_MS[unit] * 1000)
        if not rest:
            return f"{count}{unit}"
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{seconds}.{rest:06}".rstrip("0") + "s"


def _as_phrase(every: timedelta) -> str:
    """Not "every 1 day": it would be mistaken for "every day", which has a time of day."""
    seconds = every // timedelta(seconds=1)
    count, unit = next(
        (seconds // size, unit)
        for unit, size, least in _PHRASE_UNITS
        if seconds % size == 0 and seconds >= size * least
    )
    if count > 1:
        return f"every {count} {unit}s"
    return "every 1 second" if unit == "second" else f"every {unit}"


def _problem_kind(text: str) -> str:
    return next(kind for kind, pattern in _PROBLEM_PATTERNS.items() if pattern.fullmatch(text))


def _error(kind: str, interval: str) -> IntervalParseError:
    unit = interval.strip("0123456789" + WHITESPACE)
    message = _MESSAGES[kind].replace("%", excerpt(unit[:20]))
    full = f'{message} (in "{excerpt(interval)}"; write for example "5m" or "1h")'
    return IntervalParseError(full, interval=interval, kind=kind)
