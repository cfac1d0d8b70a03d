"""Reads cron lines value by value; uses no code of the product."""

from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property

from tests.simulation.wall_clock import DAY, days

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
NAMES = {
    name: number
    for names in (
        "sun mon tue wed thu fri sat",
        ". jan feb mar apr may jun jul aug sep oct nov dec",
    )
    for number, name in enumerate(names.split())
}


@dataclass(frozen=True)
class CronText:
    text: str

    @cached_property
    def fields(self) -> list[str]:
        return MACROS.get(self.text, self.text).lower().split()

    @property
    def follows_real_clock(self) -> bool:
        return any(field.startswith("*") for field in self.fields[:2])

    def walls(self, first: date, last: date) -> list[datetime]:
        """Every local time of the line on the days from first to last."""
        hours = [hour for hour in range(24) if _names(self.fields[1], hour, 23)]
        minutes = [minute for minute in range(60) if _names(self.fields[0], minute, 59)]
        return [
            datetime(day.year, day.month, day.day, hour, minute)
            for day in days(first, last)
            if self._names_day(day)
            for hour in hours
            for minute in minutes
        ]

    def _names_day(self, day: date) -> bool:
        _, _, by_date, by_month, by_weekday = self.fields
        if not _names(by_month, day.month, 12):
            return False
        dated, weekday = _names_date(by_date, day), _names_weekday(by_weekday, day)
        if by_date in "*?" or by_weekday in "*?":
            return dated and weekday
        return dated or weekday


def _names_date(field: str, day: date) -> bool:
    is_last = (day + DAY).day == 1
    terms = field.split(",")
    return (is_last and "l" in terms) or any(_term(t, day.day, 31) for t in terms if t != "l")


def _names_weekday(field: str, day: date) -> bool:
    """Sunday is 0 and 7."""
    number = day.isoweekday() % 7
    in_the_last_week = (day + 7 * DAY).month != day.month
    for term in field.split(","):
        if term.endswith("l"):
            named = in_the_last_week and _term(term[:-1], number, 6)
        elif "#" in term:
            weekday, _, nth = term.partition("#")
            named = _term(weekday, number, 6) and (day.day - 1) // 7 + 1 == int(nth)
        else:
            named = _term(term, number, 6) or (number == 0 and _term(term, 7, 6))
        if named:
            return True
    return False


def _names(field: str, value: int, highest: int) -> bool:
    return any(_term(term, value, highest) for term in field.split(","))


def _term(term: str, value: int, highest: int) -> bool:
    """`*`, `5`, `1-5`, `*/15`, `1-5/2`, `5/20`, with names for numbers."""
    span, _, step = term.partition("/")
    if span in ("*", "?"):
        low, high = int(highest in (12, 31)), highest
    else:
        start, _, end = span.partition("-")
        low = _number(start)
        high = _number(end) if end else (highest if step else low)
    return low <= value <= high and (value - low) % int(step or 1) == 0


def _number(word: str) -> int:
    return NAMES[word] if word in NAMES else int(word)
