"""Parsing of option values: seconds and whole numbers."""

from agents_app.errors import Refused, TriggerParseError
from agents_app.triggers import parse_duration


def seconds_of(text: str, option: str) -> float:
    """Accepts a number of seconds or a duration such as 5m."""
    try:
        seconds = float(text) if text.isascii() else -1.0
    except ValueError:
        return _duration_seconds(text, option)
    if not 0 <= seconds < 1e9:
        raise Refused(f"{option} {text!r}: expected seconds, such as 30, or a duration, such as 5m")
    return seconds


def whole_of(text: str, option: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high):
        raise Refused(f"{option} {text!r}: expected a whole number from {low} to {high}")
    return int(text)


def _duration_seconds(text: str, option: str) -> float:
    try:
        return parse_duration(text).total_seconds()
    except TriggerParseError as error:
        raise Refused(f"{option}: {error}") from None
