"""Cron lines as people write them, each with what it means; knows neither zones nor instants."""

import calendar
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import reduce

from hypothesis import strategies as st

from tests.agents_app.triggers.oracle import LAST, Line, Part

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

Parts = st.SearchStrategy[Part]


def every(low: int, high: int, text: str = "*") -> Part:
    return Part(text, frozenset(range(low, high + 1)))


def listed(values: Iterable[int]) -> Part:
    ordered = sorted(values)
    return Part(",".join(map(str, ordered)), frozenset(ordered))


def stepped(low: int, high: int, step: int) -> Part:
    return Part(f"*/{step}", frozenset(range(low, high + 1, step)))


def joined(parts: Sequence[Part]) -> Part:
    def join(one: Part, other: Part) -> Part:
        return Part(
            f"{one.text},{other.text}",
            one.values | other.values,
            one.last_day or other.last_day,
            one.nth_weekdays | other.nth_weekdays,
        )

    return reduce(join, parts)


@st.composite
def spelled(draw: st.DrawFn, value: int, low: int, names: Sequence[str]) -> str:
    """A number, with a nought before it or not, or a name in any case."""
    spellings = [str(value), f"{value:02}"]
    if names:
        name = names[value - low]
        spellings += [name, name.upper(), name.title()]
    return draw(st.sampled_from(spellings))


@st.composite
def terms(draw: st.DrawFn, low: int, high: int, names: Sequence[str] = ()) -> Part:
    """One item of a list: a value, a range, either of them with a step."""
    first = draw(st.integers(low, high))
    last = draw(st.integers(first, high))
    step = draw(st.integers(1, high - low + 1))
    start, end = (draw(spelled(value, low, names)) for value in (first, last))
    return draw(
        st.sampled_from(
            [
                Part(start, frozenset({first})),
                Part(f"{start}-{end}", frozenset(range(first, last + 1))),
                Part(f"{start}-{end}/{step}", frozenset(range(first, last + 1, step))),
                Part(f"{start}/{step}", frozenset(range(first, high + 1, step))),
            ]
        )
    )


def lists(of: Parts) -> Parts:
    return st.lists(of, min_size=1, max_size=4).map(joined)


def nth_weekdays() -> Parts:
    weekday, number = st.integers(0, 6), st.integers(1, 5)
    nth = st.builds(
        lambda day, nth: Part(f"{day}#{nth}", frozenset(), nth_weekdays=frozenset({(day, nth)})),
        weekday,
        number,
    )
    last = st.builds(
        lambda day: Part(f"{day}L", frozenset(), nth_weekdays=frozenset({(day, LAST)})), weekday
    )
    return nth | last


SUNDAY_AS_SEVEN = (
    Part("7", frozenset({0})),
    Part("5-7", frozenset({5, 6, 0})),
    Part("mon-sun", frozenset(range(7))),
)
LAST_DAY = Part("L", frozenset(), last_day=True)

minutes = st.one_of(
    lists(terms(0, 59)), lists(terms(0, 59)), st.integers(2, 60).map(lambda n: stepped(0, 59, n))
)
days = st.one_of(
    st.just(every(1, 31)),
    st.just(every(1, 31, "?")),
    st.integers(2, 31).map(lambda n: stepped(1, 31, n)),
    lists(terms(1, 31) | st.just(LAST_DAY)),
)
months = st.just(every(1, 12)) | lists(terms(1, 12, MONTHS))
weekdays = st.one_of(
    st.just(every(0, 6)),
    st.just(every(0, 6, "?")),
    st.integers(2, 7).map(lambda n: stepped(0, 6, n)),
    lists(terms(0, 6, WEEKDAYS) | st.sampled_from(SUNDAY_AS_SEVEN) | nth_weekdays()),
)


def some_of(values: Iterable[int]) -> Parts:
    return st.sets(st.sampled_from(sorted(values)), min_size=1, max_size=3).map(listed)


def lines() -> st.SearchStrategy[Line]:
    from_star = st.just(every(0, 23)) | st.integers(2, 24).map(lambda n: stepped(0, 23, n))
    hours = lists(terms(0, 23)) | from_star
    return st.builds(Line, minutes, hours, days, months, weekdays).filter(can_fire)


def lines_about(moment: datetime) -> st.SearchStrategy[Line]:
    """Fixed times in the hours around a moment, every day or only on the days around it."""
    near = [moment + number * timedelta(hours=1) for number in range(-2, 2)]
    minutes = some_of({moment.minute, (moment.minute - 1) % 60}) | some_of(range(60))
    return st.builds(
        Line,
        minutes,
        some_of({hour.hour for hour in near}),
        st.just(every(1, 31)) | some_of({hour.day for hour in near}),
        st.just(every(1, 12)) | some_of({hour.month for hour in near}),
        st.just(every(0, 6)),
    )


def can_fire(line: Line) -> bool:
    """30 February alone is refused when it is read."""
    if line.weekday.restricts_days or line.day.last_day:
        return True
    longest = max(calendar.monthrange(2028, month)[1] for month in line.month.values)
    return min(line.day.values) <= longest
