"""Cron expressions as other systems read them: their fires, and the same in Drover's words.

Debian's cron requires both day fields to match when one of them starts with `*`; Drover and the
systems that follow POSIX take either when neither of them is a plain `*`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from agents_app.errors import TriggerParseError
from agents_app.triggers import parse_cron

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day-of-month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day-of-week", 0, 7, _WEEKDAYS),
)
ALL_DAYS = frozenset(range(1, 32))
ALL_WEEKDAYS = frozenset(range(7))
_WEEKS = tuple(frozenset(range(first, min(first + 7, 32))) for first in (1, 8, 15, 22, 29))
# 29 February is on a given weekday every 28 years, or 40 years around 2100.
_LONGEST_WAIT = timedelta(days=41 * 366)
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)
_SHORT_MONTHS = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}


class OldCronError(Exception):
    """A field that the old system refuses; `field` is its name."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


@dataclass(frozen=True, slots=True)
class OldCron:
    """The values of the five fields; `both_days` requires the date and the weekday to match.

    When daylight saving starts, a time that is skipped fires after the change or not at all; when
    it ends, a time that occurs twice fires once or twice."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    both_days: bool
    leaves_out_skipped: bool = False
    fires_twice: bool = False

    def has_day(self, day: date) -> bool:
        by_date, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        matches = (by_date and by_weekday) if self.both_days else (by_date or by_weekday)
        return matches and day.month in self.months

    @property
    def never_fires(self) -> bool:
        """Whether no month has the days, as in `0 0 31 2 *`."""
        first = min(self.days)
        return self.both_days and all(first > _SHORT_MONTHS.get(one, 31) for one in self.months)

    def fires(self, after: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """The fires after an instant, in UTC."""
        if self.never_fires:
            return
        # The clock may have been set back over midnight: a fire of yesterday may be later.
        day = after.astimezone(zone).date() - _DAY
        last = day + _LONGEST_WAIT
        while day < last:
            if day.month not in self.months:
                day = _first_of_next_month(day)
                continue
            if self.has_day(day):
                last = day + _LONGEST_WAIT
                yield from (fire for fire in self._fires_of(day, zone) if fire > after)
            day += _DAY

    def _fires_of(self, day: date, zone: ZoneInfo) -> Iterator[datetime]:
        walls = (
            datetime.combine(day, time(hour, minute))
            for hour in sorted(self.hours)
            for minute in sorted(self.minutes)
        )
        midnight = datetime.combine(day, time(), zone)
        if midnight.utcoffset() == (midnight + _DAY).utcoffset():
            return (wall.replace(tzinfo=zone).astimezone(UTC) for wall in walls)
        return iter(sorted({fire for wall in walls for fire in self._instants(wall, zone)}))

    def _instants(self, wall: datetime, zone: ZoneInfo) -> list[datetime]:
        if _is_skipped(wall, zone):
            return [] if self.leaves_out_skipped else [_after_gap(wall, zone)]
        first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        return [first, second] if self.fires_twice else [first]


def _first_of_next_month(day: date) -> date:
    return (day.replace(day=28) + timedelta(days=4)).replace(day=1)


def _is_skipped(wall: datetime, zone: ZoneInfo) -> bool:
    there_and_back = wall.replace(tzinfo=zone).astimezone(UTC).astimezone(zone)
    return there_and_back.replace(tzinfo=None, fold=0) != wall


def _after_gap(wall: datetime, zone: ZoneInfo) -> datetime:
    while _is_skipped(wall, zone):
        wall += _MINUTE
    return wall.replace(tzinfo=zone).astimezone(UTC)


# --- parsing --------------------------------------------------------------------------------


# Thousands of lines of a crontab often have the same times.
@lru_cache(maxsize=1024)
def parse_old_cron(text: str, *, star_prefix_means_both: bool) -> OldCron:
    """Five fields or a macro; raises OldCronError.

    With `star_prefix_means_both` as Debian's cron, otherwise as POSIX says: both day fields must
    match only if one of them is `*`. A line whose minute or hour starts with `*` follows the real
    clock."""
    words = MACROS.get(text.strip().lower(), text).split()
    if len(words) != len(_FIELDS):
        raise OldCronError("fields", f"expected 5 fields, got {len(words)}")
    minutes, hours, days, months, weekdays = (
        _values(word, *field) for word, field in zip(words, _FIELDS, strict=True)
    )
    day_words = (words[2], words[4])
    if star_prefix_means_both:
        both = any(word.startswith("*") for word in day_words)
    else:
        both = "*" in day_words
    real_clock = any(word.startswith("*") for word in words[:2])
    weekdays = frozenset(day % 7 for day in weekdays)
    return OldCron(minutes, hours, days, months, weekdays, both, real_clock, real_clock)


def _values(word: str, name: str, low: int, high: int, names: tuple[str, ...]) -> frozenset[int]:
    found: set[int] = set()
    for term in word.split(","):
        span, slash, step = term.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            start, end = low, high
        elif slash and not dash:
            raise OldCronError(name, f"{term!r}: a step needs * or a range before it")
        else:
            start = _number(first, name, low, high, names)
            end = _number(last, name, low, high, names) if dash else start
        if start > end:
            raise OldCronError(name, f"{term!r}: the range is backwards")
        if slash and not (_is_number(step) and int(step)):
            raise OldCronError(name, f"{term!r}: the step must be a number of at least 1")
        found.update(range(start, end + 1, int(step) if slash else 1))
    return frozenset(found)


def _number(text: str, name: str, low: int, high: int, names: tuple[str, ...]) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + low
    if not (_is_number(text) and low <= int(text) <= high):
        raise OldCronError(name, f"{text[:20]!r} is not a number from {low} to {high}")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 9


# --- in Drover's words ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rewritten:
    """An expression of Drover; `only_weekdays` must be checked when the command starts."""

    expression: str
    only_weekdays: frozenset[int] = frozenset()


@lru_cache(maxsize=1024)
def rewrite(cron: OldCron, text: str) -> Rewritten:
    """The expression for Drover that fires at the same times, in the old spelling if possible.

    A date and a weekday that must both match are written as `1#2` (the second Monday) if the dates
    are whole weeks; otherwise the expression has the dates, and the weekdays remain to check.
    """
    words = MACROS.get(text.strip().lower(), text).split()
    minute, hour, day, month, weekday = words
    day_part, weekday_part, only = days_in_drover(cron, day, weekday)
    expression = f"{minute} {hour} {day_part} {month} {weekday_part}"
    try:
        parse_cron(expression)
    except TriggerParseError:
        # Steps beyond the end of a field, which Drover refuses: the values one by one.
        values = (cron.minutes, cron.hours, cron.days, cron.months, cron.weekdays)
        words = [
            word if word == "*" else _listed(of) for word, of in zip(words, values, strict=True)
        ]
        minute, hour, day, month, weekday = words
        day_part, weekday_part, only = days_in_drover(cron, day, weekday)
        expression = f"{minute} {hour} {day_part} {month} {weekday_part}"
    return Rewritten(expression, only)


def days_in_drover(cron: OldCron, day: str, weekday: str) -> tuple[str, str, frozenset[int]]:
    """The two day fields for Drover, and the weekdays that they cannot express."""
    every_day, every_weekday = cron.days >= ALL_DAYS, cron.weekdays >= ALL_WEEKDAYS
    if every_day or every_weekday:
        if not cron.both_days:
            return "*", "*", frozenset()
        return "*" if every_day else day, "*" if every_weekday else weekday, frozenset()
    if not cron.both_days:
        return day, weekday, frozenset()
    weeks = [number for number, week in enumerate(_WEEKS, 1) if week <= cron.days]
    if frozenset[int]().union(*(_WEEKS[number - 1] for number in weeks)) == cron.days:
        nth = [f"{one}#{number}" for number in weeks for one in sorted(cron.weekdays)]
        return "*", ",".join(nth), frozenset()
    return day, "*", cron.weekdays


def _listed(values: frozenset[int]) -> str:
    return ",".join(str(value) for value in sorted(values))


def clock_change_settings(cron: OldCron, expression: str) -> dict[str, str]:
    """The policies with which the expression handles clock changes as the old system does."""
    starred = any(word.startswith("*") for word in expression.split()[:2])
    if starred and cron.leaves_out_skipped and cron.fires_twice:
        return {}  # Drover follows the real clock, too
    gap = "skip" if cron.leaves_out_skipped else "next_valid"
    return {"gap": gap, **({"overlap_hour": "both"} if cron.fires_twice else {})}
