"""Gaps and repeated hours of every zone, compared with an oracle that looks at every minute."""

from datetime import UTC, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_app.triggers import fires_between, next_fire, parse_trigger, zone
from agents_app.triggers.clock_changes import Change, changes_between
from agents_app.triggers.dst import GAPS, OVERLAP_HOURS, Gap, OverlapHour
from tests.agents_app.triggers import oracle
from tests.agents_app.triggers.oracle import Line, Part

EVERY_HOUR = Part("*", frozenset(range(24)))
EVERY_DAY = Part("*", frozenset(range(1, 32)))
EVERY_MONTH = Part("*", frozenset(range(1, 13)))
EVERY_WEEKDAY = Part("*", frozenset(range(7)))

# Half-hour and two-hour changes, negative daylight saving, changes at midnight, Ramadan, none.
TRICKY_ZONES = (
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Havana",
    "America/New_York",
    "America/Nuuk",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Europe/London",
    "Pacific/Chatham",
    "UTC",
)


def year_of(year: int) -> tuple[int, int]:
    start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    return int(start.timestamp()), int(end.timestamp())


def listed(values: set[int]) -> Part:
    return Part(",".join(str(value) for value in sorted(values)), frozenset(values))


def stepped(low: int, high: int, step: int) -> Part:
    return Part(f"*/{step}", frozenset(range(low, high + 1, step)))


def daily(minute: Part, hour: Part) -> Line:
    return Line(minute, hour, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY)


def check(
    line: Line,
    start: datetime,
    end: datetime,
    in_zone: ZoneInfo,
    gap: Gap,
    overlap_hour: OverlapHour,
) -> None:
    expected = oracle.fires(line, start, end, in_zone, gap, overlap_hour)
    trigger = parse_trigger(line.text)
    actual = fires_between(trigger, start, end, in_zone, 10_000, gap, overlap_hour)
    assert actual == expected, f"{line.text} in {in_zone.key}, {gap}, {overlap_hour}"


def zones_by_their_changes() -> dict[tuple[Change, ...], str]:
    """One zone of each kind: names with the same changes are the same clock."""
    start, end = year_of(2027)
    kinds: dict[tuple[Change, ...], str] = {}
    for name in sorted(available_timezones() - {"localtime", "Factory"}):
        kinds.setdefault(changes_between(zone(name), start, end), name)
    return {changes: name for changes, name in kinds.items() if changes}


LINES_FOR_EVERY_ZONE = (
    daily(listed({0, 15, 30, 40}), listed({0, 1, 2, 3, 23})),
    daily(listed({30}), listed({2})),
    daily(stepped(0, 59, 20), EVERY_HOUR),
)


@pytest.mark.parametrize("line", LINES_FOR_EVERY_ZONE, ids=lambda line: line.text)
@pytest.mark.fault("F19")
def test_every_zone_agrees_with_the_oracle_around_its_clock_changes(line):
    kinds = zones_by_their_changes()
    assert len(kinds) > 20
    # A change is either a gap or a repetition, so pairs of policies try all of both.
    pairs = (
        [(GAPS[0], OVERLAP_HOURS[0])]
        if line.follows_real_clock
        else zip(GAPS, OVERLAP_HOURS, strict=True)
    )
    for (changes, name), chosen in product(kinds.items(), pairs):
        for change in changes:
            at = datetime.fromtimestamp(change.at, UTC)
            check(line, at - oracle.DAY, at + oracle.DAY, ZoneInfo(name), *chosen)


def fields(low: int, high: int, likely: st.SearchStrategy[int]) -> st.SearchStrategy[Part]:
    every = Part("*", frozenset(range(low, high + 1)))
    steps = st.integers(2, 20).map(lambda step: stepped(low, high, step))
    return st.one_of(st.just(every), steps, st.sets(likely, min_size=1, max_size=5).map(listed))


mostly_fixed = st.builds(
    Line,
    minute=st.one_of(
        st.sets(st.integers(0, 59), min_size=1, max_size=5).map(listed),
        fields(0, 59, st.integers(0, 59)),
    ),
    hour=st.one_of(
        st.sets(st.integers(0, 4), min_size=1, max_size=4).map(listed),
        fields(0, 23, st.integers(0, 23)),
    ),
    day=st.just(EVERY_DAY) | st.sets(st.integers(1, 31), min_size=1, max_size=9).map(listed),
    month=st.just(EVERY_MONTH),
    weekday=st.just(EVERY_WEEKDAY) | st.sets(st.integers(0, 6), min_size=1, max_size=4).map(listed),
)


@st.composite
def moments(draw):
    """A tricky zone and an instant that lies near one of its clock changes, if it has any."""
    in_zone = zone(draw(st.sampled_from(TRICKY_ZONES)))
    year = draw(st.integers(2020, 2035))
    changes = changes_between(in_zone, *year_of(year))
    centre = draw(st.sampled_from(changes)).at if changes else year_of(year)[0]
    offset = draw(st.integers(-36 * 3600, 12 * 3600))
    microsecond = draw(st.sampled_from([0, 1, 999_999]))
    after = datetime.fromtimestamp(centre + offset, UTC).replace(microsecond=microsecond)
    return in_zone, after


policies = st.tuples(st.sampled_from(GAPS), st.sampled_from(OVERLAP_HOURS))


@settings(max_examples=150, deadline=None)
@given(mostly_fixed, moments(), policies)
@pytest.mark.fault("F19")
def test_the_fires_around_a_clock_change_are_those_of_the_oracle(line, moment, chosen):
    in_zone, after = moment
    check(line, after, after + timedelta(days=2), in_zone, *chosen)


@settings(max_examples=150, deadline=None)
@given(mostly_fixed, moments(), policies)
def test_the_next_fire_is_strictly_later_and_the_same_from_anywhere_before_it(line, moment, chosen):
    in_zone, after = moment
    trigger = parse_trigger(line.text)
    fire = next_fire(trigger, after, in_zone, *chosen)
    assert fire is not None
    assert fire > after
    halfway = after + (fire - after) / 2
    assert next_fire(trigger, halfway, in_zone, *chosen) == fire


def test_the_clock_changes_of_a_year_are_found_to_the_second():
    new_york = changes_between(zone("America/New_York"), *year_of(2026))
    assert [(datetime.fromtimestamp(c.at, UTC), c.before, c.after) for c in new_york] == [
        (datetime(2026, 3, 8, 7, tzinfo=UTC), -18000, -14400),
        (datetime(2026, 11, 1, 6, tzinfo=UTC), -14400, -18000),
    ]


def test_a_change_belongs_to_the_period_that_it_ends():
    new_york = zone("America/New_York")
    at = int(datetime(2026, 3, 8, 7, tzinfo=UTC).timestamp())
    assert [change.at for change in changes_between(new_york, at - 1, at)] == [at]
    assert changes_between(new_york, at, at + 1) == ()


def test_a_day_that_a_country_left_out_shifts_to_the_day_after():
    apia = zone("Pacific/Apia")  # 30 December 2011 never happened there
    daily_at_nine = daily(listed({0}), listed({9}))
    start = datetime(2011, 12, 27, tzinfo=UTC)
    for gap in GAPS:
        check(daily_at_nine, start, start + timedelta(days=8), apia, gap, "first")
