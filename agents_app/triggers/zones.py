"""IANA names to ZoneInfo, with a suggestion for a wrong one; the host's zone is not known here."""

from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from agents_app.errors import TriggerParseError

# Files that lie beside the zones: one means "this machine", the other "nobody set a zone".
_NOT_ZONES = frozenset({"localtime", "Factory"})


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    if name not in _names():
        reason = f'unknown time zone "{name[:80]}": {_advice(name)}'
        raise TriggerParseError(reason, text=name, field="timezone")
    return ZoneInfo(name)


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
    # People write "London" for Europe/London; the city alone is unique nearly everywhere.
    city = {name.rpartition("/")[2].lower(): name for name in sorted(_names()) if "/" in name}
    known = city | whole
    close = get_close_matches(wanted, known, n=1, cutoff=0.75)
    return known[close[0]] if close else None
