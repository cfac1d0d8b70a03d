"""On which days a cron line fires, compared with a walk through the calendar."""

import calendar
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_app.triggers import fires_between, next_fire, parse_trigger, upcoming, zone

UTC_ZONE = zone("UTC")
START, END = date(2026, 1, 1), date(2032, 12, 31)
ALL_DAYS = [START + timedelta(days=n) for n in range((END - START).days + 1)]


def is_last(day: date) -> bool:
    return day.day == calendar.monthrange(day.year, day.month)[1]


def cron_weekday(day: date) -> int:
    return day.isoweekday() % 7


def is_nth(day: date, weekday: int, number: int) -> bool:
    return cron_weekday(day) == weekday and (day.day - 1) // 7 + 1 == number


def is_last_weekday(day: date, weekday: int) -> bool:
    return cron_weekday(day) == weekday and (day + timedelta(days=7)).month != day.month


DAYS: dict[str, Callable[[date], bool]] = {
    "* * *": lambda d: True,
    "? * ?": lambda d: True,
    "*/1 * MON": lambda d: cron_weekday(d) == 1,
    "13 * *": lambda d: d.day == 13,
    "13 * 5": lambda d: d.day == 13 or cron_weekday(d) == 5,
    "13 * ?": lambda d: d.day == 13,
    "? * 5": lambda d: cron_weekday(d) == 5,
    "1-31 * 1": lambda d: True,
    "*/2 * 1": lambda d: d.day % 2 == 1 or cron_weekday(d) == 1,
    "5-5 * *": lambda d: d.day == 5,
    "29 2 *": lambda d: (d.month, d.day) == (2, 29),
    "30 2 1": lambda d: d.month == 2 and cron_weekday(d) == 1,
    "29-31 2,4 *": lambda d: d.day >= 29 and d.month in (2, 4),
    "31 * *": lambda d: d.day == 31,
    "L * *": is_last,
    "l 2 *": lambda d: is_last(d) and d.month == 2,
    "15,L * *": lambda d: d.day == 15 or is_last(d),
    "L * 1": lambda d: is_last(d) or cron_weekday(d) == 1,
    "* * 1#2": lambda d: is_nth(d, 1, 2),
    "* * MON#1,fri#5": lambda d: is_nth(d, 1, 1) or is_nth(d, 5, 5),
    "* * 7#1": lambda d: is_nth(d, 0, 1),
    "* * 1#2,4": lambda d: is_nth(d, 1, 2) or cron_weekday(d) == 4,
    "13 * 5#2": lambda d: d.day == 13 or is_nth(d, 5, 2),
    "* * 5L": lambda d: is_last_weekday(d, 5),
    "* * FRIL": lambda d: is_last_weekday(d, 5),
    "* * L5": lambda d: is_last_weekday(d, 5),
    "* * 7L,2#1": lambda d: is_last_weekday(d, 0) or is_nth(d, 2, 1),
    "* * 0": lambda d: cron_weekday(d) == 0,
    "* * 7": lambda d: cron_weekday(d) == 0,
    "* * 5-7": lambda d: cron_weekday(d) in (5, 6, 0),
    "* * fri-sun": lambda d: cron_weekday(d) in (5, 6, 0),
    "* * mon-sun": lambda d: True,
    "* * sun-tue": lambda d: cron_weekday(d) in (0, 1, 2),
    "* * 1/2": lambda d: cron_weekday(d) in (1, 3, 5),
    "* */5 *": lambda d: d.month in (1, 6, 11),
    "1 Jan-Mar,DEC *": lambda d: d.day == 1 and d.month in (1, 2, 3, 12),
    "1 10/1 *": lambda d: d.day == 1 and d.month in (10, 11, 12),
}


@pytest.mark.parametrize("days", DAYS)
def test_a_line_fires_on_its_days_and_on_no_others(days):
    period = datetime(2025, 12, 31, 23, tzinfo=UTC), datetime(2032, 12, 31, 23, tzinfo=UTC)
    fires = fires_between(parse_trigger(f"0 12 {days}"), *period, UTC_ZONE, 10_000)
    assert [fire.date() for fire in fires] == [day for day in ALL_DAYS if DAYS[days](day)]
    assert {(fire.hour, fire.minute) for fire in fires} == {(12, 0)}


def test_a_fifth_monday_in_february_is_found_decades_ahead():
    trigger = parse_trigger("0 0 * 2 1#5")
    fires = upcoming(trigger, datetime(2050, 1, 1, tzinfo=UTC), UTC_ZONE, 2)
    assert [fire.date() for fire in fires] == [date(2072, 2, 29), date(2112, 2, 29)]


def test_the_end_of_the_calendar_is_no_error():
    end = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    assert next_fire(parse_trigger("0 0 * * *"), end, UTC_ZONE) is None
    assert next_fire(parse_trigger("1d"), end, UTC_ZONE) is None


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="zone"):
        next_fire(parse_trigger("0 0 * * *"), datetime(2026, 1, 1), UTC_ZONE)


def field(low: int, high: int) -> st.SearchStrategy[str]:
    numbers = st.integers(low, high)
    ranges = st.tuples(numbers, numbers).map(lambda pair: f"{min(pair)}-{max(pair)}")
    terms = st.one_of(numbers.map(str), ranges)
    return st.just("*") | st.lists(terms, min_size=1, max_size=3).map(",".join)


@settings(max_examples=150, deadline=None)
@given(
    st.tuples(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 6)),
    st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)),
)
def test_another_cron_library_finds_the_same_fires_in_utc(fields, after):
    expression, after = " ".join(fields), after.replace(tzinfo=UTC)
    theirs = CronSim(expression, after)
    expected = [next(theirs) for _ in range(3)]
    assert upcoming(parse_trigger(expression), after, UTC_ZONE, 3) == expected
