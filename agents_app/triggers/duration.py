"""Durations with decimals (`1.5h`), for timeouts and `--every`; `interval:` is interval.py's."""

import re
from datetime import timedelta
from decimal import Decimal

from agents_app.errors import TriggerParseError

_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
# Any of the units takes a plural s, so "5ms" is five minutes: there are no milliseconds here.
_DURATION = re.compile(
    r"([0-9]+(?:\.[0-9]+)?)[ \t\n\r\f\v]*(sec|s|min|m|hr|h|day|d)s?", re.ASCII | re.IGNORECASE
)


def parse_duration(text: str) -> timedelta:
    found = _DURATION.fullmatch(text.strip(" \t\n\r\f\v"))
    if found is None:
        raise _error(text, "write a number and a unit, such as 30s, 10m, 1.5h or 1d")
    number, unit = found.groups()
    if len(number) > 30:
        raise _error(text, "the number is too long")
    try:
        # Decimal, because 1.1 hours are 3960 seconds and not a hair more.
        microseconds = int(Decimal(number) * _UNIT_SECONDS[unit[0].lower()] * 1_000_000)
        duration = timedelta(microseconds=microseconds)
    except OverflowError:
        raise _error(text, "it is longer than time itself; use a smaller number") from None
    if not duration:
        raise _error(text, "it must be longer than nothing")
    return duration


def _error(text: str, reason: str) -> TriggerParseError:
    return TriggerParseError(f'invalid duration "{text[:80]}": {reason}', text=text)
