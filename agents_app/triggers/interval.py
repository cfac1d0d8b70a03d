"""`interval:` text and when an interval schedule runs next; plain durations are duration.py's."""

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents_app.errors import IntervalParseError

_WHITESPACE = " \t\n\r\f\v"
_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_EXPECTED = 'Expected format: "{number}{unit}"'
_INTERVAL = re.compile(rf"(-?[0-9]+)[{_WHITESPACE}]*([a-zA-Z]+)")
_MAX_JITTER_PERCENT = 10


@dataclass(frozen=True, slots=True)
class IntervalTrigger:
    text: str
    every: timedelta


def parse_interval(interval: str) -> int:
    """Milliseconds in a text such as `5m`: a whole number and one of s, m, h, d."""
    text = interval.strip(_WHITESPACE)
    found = _INTERVAL.fullmatch(text)
    if found is None:
        raise _error(_kind_of_misfit(text), interval)
    number, unit = float(found[1]), found[2]
    if number < 0:
        raise _error("negative", interval)
    if number == 0:
        raise _error("zero", interval)
    if unit.lower() not in _UNIT_MS:
        raise _error("invalid_unit", interval, unit)
    # In floating point, because milliseconds travel as a JSON number and round like one past 2**53.
    milliseconds = number * _UNIT_MS[unit.lower()]
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
    now: datetime,
    rand: float,
) -> datetime:
    """The last completion plus interval and jitter, never before `now`; `rand` is from 0 to 1."""
    if last_completed_at is None:
        return now
    every = _as_timedelta(interval)
    jitter = _jitter(every, jitter_percent or 0, rand)
    try:
        return max(last_completed_at + every + jitter, now)
    except OverflowError:
        raise _error("too_long", interval) from None


def is_schedule_due(next_trigger: datetime, now: datetime) -> bool:
    return next_trigger <= now


def _jitter(every: timedelta, percent: float, rand: float) -> timedelta:
    clamped = min(max(percent, 0), _MAX_JITTER_PERCENT)
    every_ms = every // timedelta(milliseconds=1)
    return timedelta(milliseconds=math.floor(rand * (every_ms * clamped) / 100))


def _as_timedelta(interval: str) -> timedelta:
    try:
        return timedelta(milliseconds=parse_interval(interval))
    except OverflowError:
        raise _error("too_long", interval) from None


def _kind_of_misfit(text: str) -> str:
    if not text:
        return "empty"
    if re.fullmatch(r"[0-9]+", text):
        return "missing_unit"
    if re.fullmatch(r"[a-zA-Z]+", text):
        return "missing_number"
    if re.search(r"[0-9]\.[0-9]", text):
        return "decimal"
    return "invalid_format"


_MESSAGES = {
    "empty": f"Interval cannot be empty. {_EXPECTED}",
    "missing_unit": f"Missing time unit. {_EXPECTED}",
    "missing_number": f"Missing number. {_EXPECTED}",
    "decimal": "Decimal values are not supported",
    "negative": "Negative intervals are not allowed",
    "zero": "Zero interval is not allowed",
    "invalid_unit": 'Invalid time unit "%". Valid units are: s, m, h, d',
    "invalid_format": f"Invalid interval format. {_EXPECTED}",
    "too_long": "The interval is too long to be added to a date",
}


def _error(kind: str, interval: str, unit: str = "") -> IntervalParseError:
    message = _MESSAGES[kind].replace("%", unit[:20])
    full = f'{message} (in "{interval[:80]}"; write for example "5m" or "1h")'
    return IntervalParseError(full, interval=interval, kind=kind)
