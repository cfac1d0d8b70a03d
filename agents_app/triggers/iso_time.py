"""Reads dates in a phrase: `2026-06-01`, `2026-06-01T12:00`, `2026-06-01 12:00+02:00`."""

import re
from datetime import UTC, date, datetime

from agents_app.triggers.moments import OnDay
from agents_app.triggers.once import OnceTrigger
from agents_app.triggers.phrase_parts import take_at
from agents_app.triggers.words import WordReader

_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
# Hours up to 23: newer versions of Python accept 24:00 as the next day.
_CLOCK = r"([01][0-9]|2[0-3]):[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_STARTS_WITH_DATE = re.compile(_DATE)
_DATE_TIME = re.compile(rf"{_DATE}t{_CLOCK}(z|[+-][0-9]{{2}}:?[0-9]{{2}})?")


def is_date(word: str) -> bool:
    return _STARTS_WITH_DATE.match(word) is not None


def take_date(reader: WordReader) -> OnDay | OnceTrigger:
    """Read a date with a time; 09:00 if no time is given."""
    if _joined(reader):
        return take_date_time(reader)
    if not re.fullmatch(_DATE, reader.word):
        raise reader.error("expected a date such as 2030-06-01")
    try:
        day = date.fromisoformat(reader.word)
    except ValueError:
        raise reader.error(
            "there is no such date; write year-month-day, such as 2030-06-01"
        ) from None
    reader.skip()
    return OnDay(lambda _: day, take_at(reader))


def take_date_time(reader: WordReader) -> OnDay | OnceTrigger:
    """Read a date and a time: an instant if it has an offset, else a wall-clock time."""
    joined = _joined(reader)
    if not joined:
        raise reader.error("expected a date and a time such as 2030-06-01T12:00")
    try:
        found = datetime.fromisoformat(joined.upper())
        instant = found.astimezone(UTC) if found.tzinfo else None
    except (ValueError, OverflowError):
        raise reader.error("there is no such time; write for example 2030-06-01T12:00") from None
    reader.skip(1 if "t" in reader.word else 2)
    if instant is not None:
        return OnceTrigger(reader.text, instant)
    return OnDay(lambda _: found.date(), found.time())


def _joined(reader: WordReader) -> str:
    """The next one or two words as one date-time, else empty."""
    word = reader.word
    joined = word if "t" in word else f"{word}t{reader.following}"
    return joined if _DATE_TIME.fullmatch(joined) else ""
