"""Reads parts of a phrase: a time of day, weekdays, a day of the month, a duration."""

import re
from datetime import time, timedelta

from agents_app.triggers.words import WordReader

DEFAULT_TIME = time(9)
MONDAY = 1
# Numbered as in cron.
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
WEEKDAYS = {name[:size]: day for day, name in enumerate(_DAYS) for size in (3, len(name))}
LAST_DAY = "L"

_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
# Single letters have no plural: "5 ms" could mean milliseconds or minutes.
_SHORT = {
    "second": ("s", "sec", "secs"),
    "minute": ("m", "min", "mins"),
    "hour": ("h", "hr", "hrs"),
    "day": ("d",),
    "week": ("w",),
}
_UNIT_SECONDS = {
    word: seconds for unit, seconds in _UNITS.items() for word in (unit, f"{unit}s", *_SHORT[unit])
}
_NUMBER = re.compile(r"[0-9]+")
_GLUED = re.compile(r"([0-9]+)([a-z]+)")
_ORDINAL = re.compile(r"([0-9]{1,2})(st|nd|rd|th)")
_TIME = re.compile(r"([0-9]{1,2})(?::([0-9]{2}))?(am|pm)?")
_NAMED_TIMES = {"noon": time(12), "midnight": time(0)}


def take_at(reader: WordReader) -> time:
    """Read `at 17:00`; 09:00 if no time is given."""
    if reader.take("at"):
        return take_time(reader)
    if _read_time(reader.word, reader.following):
        raise reader.error(f'write "at" before a time: "at {reader.word}"')
    return DEFAULT_TIME


def take_times(reader: WordReader) -> tuple[time, ...]:
    """Read `at 9am`, `at 9am and 5pm` or `at 8:00, 12:00 and 17:30`; 09:00 if no time is given."""
    if reader.word != "at":
        return (take_at(reader),)
    times = {take_at(reader)}
    while reader.word in (",", "and"):
        reader.take(",")
        reader.take("and")
        reader.take("at")
        times.add(take_time(reader))
    return tuple(sorted(times))


def take_time(reader: WordReader) -> time:
    if name := reader.take(*_NAMED_TIMES):
        return _NAMED_TIMES[name]
    word, following = reader.word, reader.following
    found = _read_time(word, following)
    if found is None:
        raise reader.error("expected a time such as 17:00, 9am, 5 pm, noon or midnight")
    at, words = found
    reader.skip(words)
    return at


def _read_time(word: str, following: str) -> tuple[time, int] | None:
    """The time and the number of its words, or None."""
    found = _TIME.fullmatch(word)
    if found is None:
        return None
    apart = following if not found[3] and following in ("am", "pm") else ""
    at = _time_of(int(found[1]), found[2], found[3] or apart)
    return (at, 2 if apart else 1) if at else None


def _time_of(hour: int, minute: str | None, half: str) -> time | None:
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (half == "pm")
    elif minute is None:  # "at 9" may mean the morning or the evening
        return None
    minutes = int(minute or 0)
    return time(hour, minutes) if hour < 24 and minutes < 60 else None


def take_weekdays(reader: WordReader) -> tuple[int, ...]:
    """Read one or more weekdays: `monday`, `mon and fri`, `monday, wednesday and friday`."""
    days = [take_weekday(reader)]
    while reader.word in (",", "and"):
        reader.take(",")
        reader.take("and")
        days.append(take_weekday(reader))
    return tuple(sorted(set(days)))


def take_weekday(reader: WordReader) -> int:
    day = WEEKDAYS.get(reader.word)
    if day is None:
        raise reader.error('expected a weekday such as "monday" or "mon"')
    reader.skip()
    return day


def take_day_of_month(reader: WordReader) -> str:
    """Read a day of the month; returns the cron value, `1` to `31`, or L for the last day."""
    reader.take("the")
    if reader.word == "last" and reader.following == "day":
        reader.skip(2)
        return LAST_DAY
    found = _ORDINAL.fullmatch(reader.word)
    if found is None or not 1 <= int(found[1]) <= 31:
        raise reader.error('expected a day of the month: "the 1st" to "the 31st" or "the last day"')
    reader.skip()
    return str(int(found[1]))


def take_span(reader: WordReader) -> timedelta:
    """Read `30 minutes` or `30m`: a whole number and a unit, as two words or one."""
    number, unit, words = reader.word, reader.following, 2
    if (glued := _GLUED.fullmatch(number)) and glued[2] in _UNIT_SECONDS:
        number, unit, words = glued[1], glued[2], 1
    if not _NUMBER.fullmatch(number):
        raise reader.error('expected a whole number and a unit, such as "30 minutes"')
    if unit not in _UNIT_SECONDS:
        raise reader.error(f"expected a unit: {', '.join(f'{name}s' for name in _UNITS)}", ahead=1)
    if not int(number):
        raise reader.error('the number must be at least 1; write for example "15 minutes"')
    try:
        span = timedelta(seconds=int(number) * _UNIT_SECONDS[unit])
    except OverflowError:
        raise reader.error("the duration is too long; use a smaller number") from None
    reader.skip(words)
    return span


def take_one(reader: WordReader) -> timedelta | None:
    """Read `a minute` or `an hour`: one unit that is written out; else None."""
    if reader.word not in ("a", "an") or reader.following not in _UNITS:
        return None
    seconds = _UNITS[reader.following]
    reader.skip(2)
    return timedelta(seconds=seconds)
