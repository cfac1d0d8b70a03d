"""Phrases as people write them, each with the instants that are meant by it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from tests.agents_app.triggers import oracle
from tests.agents_app.triggers.lines import WEEKDAYS, every, listed
from tests.agents_app.triggers.oracle import DAY, Line, Part

FULL_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
UNITS = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": DAY,
    "week": 7 * DAY,
}
_ENDINGS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
ORDINALS = {day: f"{day}{_ENDINGS.get(day, 'th')}" for day in range(1, 32)}
CASES: tuple[Callable[[str], str], ...] = (str, str.lower, str.upper, str.title)
NINE = time(9)


class Meaning(Protocol):
    def first(self, now: datetime, zone: ZoneInfo, gap: str, overlap_hour: str) -> datetime | None:
        """None if it lies in the past or is skipped."""
        ...


@dataclass(frozen=True)
class Elapsed:
    span: timedelta

    def first(self, now: datetime, *_: object) -> datetime:
        return now + self.span


@dataclass(frozen=True)
class OnLine:
    """A cron line that says the same."""

    line: Line

    def first(self, now: datetime, zone: ZoneInfo, gap: str, overlap_hour: str) -> datetime | None:
        # A 31st that is skipped is followed by another one within four months.
        for days in (3, 9, 130):
            if fires := oracle.fires(self.line, now, now + days * DAY, zone, gap, overlap_hour):
                return fires[0]
        return None


@dataclass(frozen=True)
class OnDate:
    pick: Callable[[date], date]
    at: time

    def first(self, now: datetime, zone: ZoneInfo, gap: str, overlap_hour: str) -> datetime | None:
        wall = datetime.combine(self.pick(oracle.local(now, zone).date()), self.at)
        fires = oracle.resolve(wall, zone, gap, overlap_hour)
        return next((fire for fire in fires if fire > now), None)


@dataclass(frozen=True)
class Phrase:
    text: str
    meaning: Meaning
    once: bool = False


@st.composite
def times(draw: st.DrawFn) -> tuple[str, time]:
    """With its "at"; left out, it is nine o'clock."""
    hour, minute = draw(st.integers(0, 23)), draw(st.sampled_from([0, 1, 29, 30, 59]))
    half, on_the_dial = ("pm" if hour >= 12 else "am"), (hour + 11) % 12 + 1
    texts = {
        f"at {hour:02}:{minute:02}": time(hour, minute),
        f"at {hour}:{minute:02}": time(hour, minute),
        f"at {on_the_dial}{half}": time(hour),
        f"at {on_the_dial} {half}": time(hour),
        f"at {on_the_dial}:{minute:02} {half}": time(hour, minute),
        "at noon": time(12),
        "at midnight": time(0),
    }
    text = draw(st.sampled_from(sorted(texts)))
    return text, texts[text]


maybe_times = times() | st.just(("", NINE))
numbers = st.sampled_from([1, 2, 7, 24, 60]) | st.integers(1, 400)
spans = st.tuples(numbers, st.sampled_from(sorted(UNITS)))


def line_at(at: time, day: Part | None = None, weekday: Part | None = None) -> Line:
    on_day, on_weekday = day or every(1, 31), weekday or every(0, 6)
    return Line(listed({at.minute}), listed({at.hour}), on_day, every(1, 12), on_weekday)


@st.composite
def elapsed_phrases(draw: st.DrawFn) -> Phrase:
    number, unit = draw(spans)
    span, s = number * UNITS[unit], "s" if number > 1 else ""
    return draw(
        st.sampled_from(
            [
                Phrase(f"every {number} {unit}{s}", Elapsed(span)),
                Phrase("every minute", Elapsed(UNITS["minute"])),
                Phrase("every hour", Elapsed(UNITS["hour"])),
                Phrase("hourly", Elapsed(UNITS["hour"])),
                Phrase(f"in {number} {unit}{s}", Elapsed(span), once=True),
                Phrase(f"in a {unit}", Elapsed(UNITS[unit]), once=True),
                Phrase(f"{number}h", Elapsed(number * UNITS["hour"])),
                Phrase(f"{number}.5 min", Elapsed((number + 0.5) * UNITS["minute"])),
            ]
        )
    )


@st.composite
def weekly_phrases(draw: st.DrawFn) -> Phrase:
    days = draw(st.lists(st.integers(0, 6), min_size=1, max_size=3, unique=True))
    spelling = draw(st.sampled_from([WEEKDAYS, FULL_WEEKDAYS]))
    names = draw(st.sampled_from([" and ", ", ", ","])).join(spelling[day] for day in days)
    text, at = draw(maybe_times)
    weekday = listed(days)
    start, meant = draw(
        st.sampled_from(
            [
                (f"every {names}", weekday),
                (f"every week on {names}", weekday),
                (f"weekly on {names}", weekday),
                ("every week", listed({1})),
                ("weekly", listed({1})),
                ("every weekday", listed(range(1, 6))),
                ("every day", every(0, 6)),
                ("daily", every(0, 6)),
            ]
        )
    )
    return Phrase(f"{start} {text}", OnLine(line_at(at, weekday=meant)))


@st.composite
def monthly_phrases(draw: st.DrawFn) -> Phrase:
    day = draw(st.integers(1, 31))
    text, at = draw(maybe_times)
    start, meant = draw(
        st.sampled_from(
            [
                (f"every month on the {ORDINALS[day]}", listed({day})),
                (f"every month on {ORDINALS[day]}", listed({day})),
                ("every month on the last day", Part("L", frozenset(), last_day=True)),
                ("every month", listed({1})),
            ]
        )
    )
    return Phrase(f"{start} {text}", OnLine(line_at(at, day=meant)))


@st.composite
def dated_phrases(draw: st.DrawFn) -> Phrase:
    weekday, day = draw(st.integers(0, 6)), draw(st.dates(date(1971, 1, 1), date(2099, 12, 31)))
    needed, on_it = draw(times())
    text, at = draw(maybe_times)

    def next_weekday(today: date) -> date:
        day = today + DAY
        while day.isoweekday() % 7 != weekday:
            day += DAY
        return day

    name = draw(st.sampled_from([WEEKDAYS, FULL_WEEKDAYS]))[weekday]
    return draw(
        st.sampled_from(
            [
                Phrase(needed, OnLine(line_at(on_it)), once=True),
                Phrase(f"today {needed}", OnDate(lambda today: today, on_it), once=True),
                Phrase(f"tomorrow {text}", OnDate(lambda today: today + DAY, at), once=True),
                Phrase(f"next {name} {text}", OnDate(next_weekday, at), once=True),
                Phrase(f"on {day} {text}", OnDate(lambda _: day, at), once=True),
                Phrase(f"{day}T{on_it:%H:%M}", OnDate(lambda _: day, on_it), once=True),
                Phrase(f"at {day} {on_it:%H:%M}", OnDate(lambda _: day, on_it), once=True),
            ]
        )
    )


@st.composite
def dressed(draw: st.DrawFn, plain: st.SearchStrategy[Phrase]) -> Phrase:
    """In any case, with blanks wherever there may be some."""
    phrase = draw(plain)
    case = draw(st.sampled_from(CASES))
    blank = draw(st.sampled_from([" ", "  ", "\t", " \n"]))
    words = case(phrase.text).split()
    before, after = draw(st.sampled_from(["", blank])), draw(st.sampled_from(["", blank]))
    return Phrase(before + blank.join(words) + after, phrase.meaning, phrase.once)


phrases = dressed(
    st.one_of(elapsed_phrases(), weekly_phrases(), monthly_phrases(), dated_phrases())
)
