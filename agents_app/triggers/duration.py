"""Parses durations with decimals (`1.5h`), for timeouts and `--every`."""

import re
from datetime import timedelta
from decimal import Decimal

from agents_app.errors import TriggerParseError
from agents_app.triggers.words import WHITESPACE, excerpt

# A longer number is out of range for any date and would only cost time.
MAX_DIGITS = 1000

_SPELLINGS = {1: "s sec", 60: "m min", 3600: "h hr", 86400: "d day"}
# Every unit may have a plural s, so "5ms" is five minutes: there are no milliseconds.
_UNIT_SECONDS = {
    word + plural: seconds
    for seconds, words in _SPELLINGS.items()
    for word in words.split()
    for plural in ("", "s")
}
_NUMBER_AND_WORD = re.compile(rf"(?P<number>[0-9]+(\.[0-9]+)?)[{WHITESPACE}]*(?P<unit>[a-zA-Z]+)")


def parse_duration(text: str) -> timedelta:
    found = _NUMBER_AND_WORD.fullmatch(text.strip(WHITESPACE))
    unit_seconds = _UNIT_SECONDS.get(found["unit"].lower()) if found else None
    if found is None or unit_seconds is None:
        raise _error(text, "write a number and a unit, such as 30s, 10m, 1.5h or 1d")
    number = found["number"]
    if len(number) > MAX_DIGITS:
        raise _error(text, "the number is too long")
    try:
        # Decimal, because 1.1 hours are exactly 3960 seconds.
        microseconds = int(Decimal(number) * unit_seconds * 1_000_000)
        duration = timedelta(microseconds=microseconds)
    except OverflowError:
        raise _error(text, "it is too long; use a smaller number") from None
    if not duration:
        raise _error(text, "it must be more than zero")
    return duration


def _error(text: str, reason: str) -> TriggerParseError:
    return TriggerParseError(f'invalid duration "{excerpt(text)}": {reason}', text=text)
