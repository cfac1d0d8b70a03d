"""Finds time zones by their IANA name, with a suggestion for an unknown name."""

from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from agents_app.errors import TriggerParseError
from agents_app.triggers.words import WHITESPACE, excerpt

# Files in the zone directory that are not zones: the host's zone, and "no zone is set".
_NOT_ZONES = frozenset({"localtime", "Factory"})


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    if name not in _names():
        reason = f'unknown time zone "{excerpt(name)}": {_advice(name)}'
        raise TriggerParseError(reason, text=name, field="timezone")
    return ZoneInfo(name)


def split_zone(text: str) -> tuple[str, ZoneInfo | None]:
    """The text without a zone at its end, and that zone or None; the case is ignored."""
    rest, last = _last_word(text)
    if not rest:
        return text, None
    if name := _by_lower_case().get(last.lower()):
        return rest, ZoneInfo(name)
    if last.partition("/")[0].lower() in _areas() and "/" in last:
        try:
            zone(last)
        except TriggerParseError as error:
            error.position = len(rest)
            raise
    return text, None


def _last_word(text: str) -> tuple[str, str]:
    """The text before the last word, and the last word; empty if there is only one word."""
    words = text.rstrip(WHITESPACE)
    start = max(words.rfind(blank) for blank in WHITESPACE) + 1
    return (words[:start], words[start:]) if words[:start].strip(WHITESPACE) else ("", words)


@lru_cache(maxsize=1)
def _by_lower_case() -> dict[str, str]:
    return {name.lower(): name for name in _names()}


@lru_cache(maxsize=1)
def _areas() -> frozenset[str]:
    return frozenset(name.partition("/")[0].lower() for name in _names() if "/" in name)


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(available_timezones()) - _NOT_ZONES


def _advice(name: str) -> str:
    wanted = name[:80].strip().lower().replace(" ", "_")
    if found := _closest(wanted):
        return f"did you mean {found}?"
    return "use an IANA name such as Europe/Berlin, America/New_York or UTC"


def _closest(wanted: str) -> str | None:
    whole = {name.lower(): name for name in sorted(_names())}
    # "London" is short for Europe/London; the city alone is unique in nearly all cases.
    city = {name.rpartition("/")[2].lower(): name for name in sorted(_names()) if "/" in name}
    known = city | whole
    close = get_close_matches(wanted, known, n=1, cutoff=0.75)
    return known[close[0]] if close else None
