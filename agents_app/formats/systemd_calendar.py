"""Reads systemd's calendar events (`Mon..Fri *-*-* 09:00:00`) and time spans (`1h 30min`)."""

import re
from dataclasses import dataclass
from datetime import timedelta

from agents_app.errors import TriggerParseError
from agents_app.formats.old_cron import ALL_WEEKDAYS, OldCron, days_in_drover
from agents_app.triggers import zone

_NAMES = {
    "minutely": "*-*-* *:*:00",
    "hourly": "*-*-* *:00:00",
    "daily": "*-*-* 00:00:00",
    "monthly": "*-*-01 00:00:00",
    "weekly": "Mon *-*-* 00:00:00",
    "yearly": "*-01-01 00:00:00",
    "annually": "*-01-01 00:00:00",
    "quarterly": "*-01,04,07,10-01 00:00:00",
    "semiannually": "*-01,07-01 00:00:00",
}
# In the order of systemd, in which a week starts with Monday; cron counts from Sunday.
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_LONG = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TERM = re.compile(r"(?:(\*)|(\d{1,8})(?:\.\.(\d{1,8}))?)(?:/(\d{1,8}))?", re.ASCII)
_DATE = re.compile(r"(?:(?P<year>[^-~]+)-)?(?P<month>[^-~]+)(?P<sep>[-~])(?P<day>[^-~]+)")
_UNITS = {
    1e-6: "us usec µs", 1e-3: "ms msec", 1: "s sec second seconds",
    60: "m min minute minutes", 3600: "h hr hour hours", 86_400: "d day days",
    604_800: "w week weeks", 2_629_800: "M month months", 31_557_600: "y year years",
}  # fmt: skip
_SECONDS = {word: size for size, words in _UNITS.items() for word in words.split()}
_SPAN = re.compile(r"(\d{1,15}(?:\.\d+)?)\s*([A-Za-zµ]*)\s*")


class CalendarError(Exception):
    """A calendar event or time span that systemd refuses, or that Drover cannot express."""


@dataclass(frozen=True, slots=True)
class CalendarEvent:
    """A calendar event in Drover's words; `notes` say what is different."""

    expression: str
    timezone: str
    cron: OldCron | None = None
    only_weekdays: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()


def parse_span(text: str) -> timedelta:
    """`90`, `15min`, `1h 30min`; a number without a unit is in seconds."""
    total, position = 0.0, 0
    words = text.strip()
    while position < len(words):
        found = _SPAN.match(words, position)
        unit = (found[2] or "s") if found else ""
        if found is None or unit not in _SECONDS:
            raise CalendarError(f"{text[:60]!r} is not a time span such as 15min or 1h 30min")
        total += float(found[1]) * _SECONDS[unit]
        position = found.end()
    if not 0 < total <= 366 * 86_400:
        raise CalendarError(f"{text[:60]!r} must be more than 0 and at most 366 days")
    return timedelta(seconds=total)


def parse_calendar(text: str, host_zone: str) -> CalendarEvent:
    words = _NAMES.get(text.strip().lower(), text).split()
    timezone, words = _take_zone(words, host_zone)
    if len(words) == 1 and words[0].lower() in _NAMES:
        words = _NAMES[words[0].lower()].split()
    weekdays, words = _take_weekdays(words)
    date = words.pop(0) if words and ":" not in words[0] else "*-*-*"
    time = words.pop(0) if words else "00:00:00"
    if words or ":" not in time:
        raise CalendarError(f"{text[:60]!r} is not a calendar event")
    hours, minutes, seconds = _time(time)
    found = _DATE.fullmatch(date)
    if found is None:
        raise CalendarError(f"{date[:60]!r} is not a date such as *-*-01")
    year = found["year"] or "*"
    if year != "*":
        return _once(year, found, time, timezone, weekdays)
    if seconds != {0} and len(seconds) > 1:
        return _by_seconds(text, time, date, weekdays, timezone)
    notes = () if seconds == {0} else (f"second {min(seconds)}: Drover fires at second 0",)
    return _recurring(found, weekdays, hours, minutes, timezone, notes)


def _recurring(
    date: re.Match[str],
    weekdays: frozenset[int],
    hours: frozenset[int],
    minutes: frozenset[int],
    timezone: str,
    notes: tuple[str, ...],
) -> CalendarEvent:
    months = _values(date["month"], 1, 12)
    # With `*`, Drover would follow the real clock and fire twice in the hour that occurs twice.
    every = ("*", "*") if timezone == "UTC" else ("0-59", "0-23")
    clock = f"{_listed(minutes, 60, every[0])} {_listed(hours, 24, every[1])}"
    month = _listed(months, 12)
    if date["sep"] == "~":
        expression = f"{clock} {_from_end(date['day'], weekdays, month)}"
        return CalendarEvent(expression, timezone, notes=notes)
    days = _values(date["day"], 1, 31)
    cron = OldCron(minutes, hours, days, months, weekdays, True, leaves_out_skipped=True)
    day, weekday, only = days_in_drover(cron, _listed(days, 31), _listed(weekdays, 7))
    return CalendarEvent(f"{clock} {day} {month} {weekday}", timezone, cron, only, notes)


def _from_end(day: str, weekdays: frozenset[int], month: str) -> str:
    """`~01` is the last day of a month, and `~07/1` with a weekday is the last such weekday."""
    if day.lstrip("0") == "1" and weekdays == ALL_WEEKDAYS:
        return f"L {month} *"
    if re.fullmatch(r"0*7/0*1", day) and weekdays != ALL_WEEKDAYS:
        return f"* {month} {','.join(f'{one}L' for one in sorted(weekdays))}"
    raise CalendarError(f"~{day[:20]}: Drover counts only the last day and the last weekdays")


def _once(
    year: str, date: re.Match[str], time: str, timezone: str, weekdays: frozenset[int]
) -> CalendarEvent:
    parts = [year, date["month"], date["day"], *time.split(":")]
    if not all(part.isdigit() for part in parts) or date["sep"] == "~":
        raise CalendarError(f"year {year[:20]}: Drover has no schedules for some years only")
    if weekdays != ALL_WEEKDAYS:
        raise CalendarError("a weekday beside a single date is not supported; remove it")
    clock = ":".join(part.zfill(2) for part in parts[3:])
    stamp = f"{year}-{parts[1].zfill(2)}-{parts[2].zfill(2)}T{clock}"
    return CalendarEvent(stamp, timezone)


def _by_seconds(
    text: str, time: str, date: str, weekdays: frozenset[int], timezone: str
) -> CalendarEvent:
    """`*:*:00/15` is an interval; other lists of seconds have no counterpart."""
    found = re.fullmatch(r"\*:\*:0+/(\d+)", time)
    if found and 60 % int(found[1]) == 0 and date == "*-*-*" and weekdays == ALL_WEEKDAYS:
        note = "an interval starts at any second, not at the full minute"
        return CalendarEvent(f"every {int(found[1])} seconds", timezone, notes=(note,))
    raise CalendarError(f"{text[:60]!r}: Drover has no schedules with several seconds")


# --- parts ----------------------------------------------------------------------------------


def _take_zone(words: list[str], host_zone: str) -> tuple[str, list[str]]:
    last = words[-1] if words else ""
    if len(words) > 1 and (last == "UTC" or ("/" in last and last[0].isalpha())):
        try:
            return zone(last).key, words[:-1]
        except TriggerParseError as error:
            raise CalendarError(error.reason) from None
    return host_zone, words


def _take_weekdays(words: list[str]) -> tuple[frozenset[int], list[str]]:
    if not words or not words[0][0].isalpha():
        return ALL_WEEKDAYS, words
    found: set[int] = set()
    for term in filter(None, words[0].lower().split(",")):
        first, last = (*re.split(r"\.\.|-", term, maxsplit=1), "")[:2]
        start = _weekday(first)
        end = _weekday(last) if last else start
        if start > end:
            raise CalendarError(f"{term[:20]!r}: the range is backwards")
        found.update(range(start, end + 1))
    # Monday is 0 so far, and 1 in cron.
    return frozenset((day + 1) % 7 for day in found), words[1:]


def _weekday(name: str) -> int:
    for names in (_WEEKDAYS, _LONG):
        if name in names:
            return names.index(name)
    raise CalendarError(f"{name[:20]!r} is not a weekday")


def _time(text: str) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
    hour, minute, second = (*text.split(":"), "00")[:3]
    if text.count(":") > 2:
        raise CalendarError(f"{text[:60]!r} is not a time")
    return _values(hour, 0, 23), _values(minute, 0, 59), _values(second, 0, 59)


def _values(text: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for term in text.split(","):
        parts = _TERM.fullmatch(term)
        if parts is None or (parts[4] and (parts[1] or not int(parts[4]))):
            raise CalendarError(f"{text[:60]!r} cannot be read at {term[:20]!r}")
        start = low if parts[1] else int(parts[2])
        end = int(parts[3]) if parts[3] else (high if parts[1] or parts[4] else start)
        if not low <= start <= end <= high:
            raise CalendarError(f"{term[:20]!r} must be from {low} to {high}")
        found.update(range(start, end + 1, int(parts[4]) if parts[4] else 1))
    return frozenset(found)


def _listed(values: frozenset[int], size: int, every: str = "*") -> str:
    if len(values) == size:
        return every
    return ",".join(str(value) for value in sorted(values))
