"""Any cron line in any zone at any instant, beside an oracle that looks at every minute.

Seen red by breaking a copy of the product: a span that includes its end, no shift out of a gap, a
repeated hour that fires twice, a next minute that is one too late, the last day of a month taken
for the 28th, a change that is looked for too near, an answer taken from beyond what was looked up.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise, product
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agents_app.triggers import (
    GAPS,
    OVERLAP_HOURS,
    Gap,
    OverlapHour,
    fires_between,
    next_fire,
    parse_trigger,
    upcoming,
)
from tests.agents_app.triggers import oracle
from tests.agents_app.triggers.lines import every, lines, lines_about, listed
from tests.agents_app.triggers.oracle import DAY, HOUR, MINUTE, SECOND, Line, Part

# The same examples on every machine: a red one can be looked at.
repeatable = settings(
    derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
# "localtime" is whatever this machine is set to.
ZONES = tuple(sorted(available_timezones() - {"localtime"}))
FIRST, END = datetime(1970, 1, 2, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
POLICIES = tuple(product(GAPS, OVERLAP_HOURS))


@dataclass(frozen=True)
class Case:
    line: Line
    zone: ZoneInfo
    after: datetime

    def next_fire(self, gap: Gap, overlap_hour: OverlapHour) -> datetime | None:
        return next_fire(parse_trigger(self.line.text), self.after, self.zone, gap, overlap_hour)

    def expected(self, end: datetime, gap: Gap, overlap_hour: OverlapHour) -> list[datetime]:
        return oracle.fires(self.line, self.after, end, self.zone, gap, overlap_hour)

    def explains(self, fire: datetime, gap: Gap) -> bool:
        """Whether the clock shows a time that was asked for, or came to it out of a gap."""
        shown = oracle.local(fire, self.zone)
        if shown.second == 0 and self.line.matches(shown):
            return True
        left_out = () if self.line.follows_real_clock else self.left_out(fire, gap)
        return any(self.line.matches(wall) for wall in left_out)

    def left_out(self, fire: datetime, gap: Gap) -> Iterator[datetime]:
        """The times in a gap for which the policy fires now."""
        shown = oracle.local(fire, self.zone)
        if gap == "shift":
            with_the_old_offset = oracle.local(fire - 2 * DAY, self.zone) + 2 * DAY
            if not oracle.exists(with_the_old_offset, self.zone):
                yield with_the_old_offset
        if gap == "next_valid":
            wall = oracle.local(fire - SECOND, self.zone) + SECOND
            while wall < shown:
                yield wall
                wall += MINUTE


def at_half_past_two(name: str, after: datetime, day: Part, month: Part) -> Case:
    return Case(Line(listed({30}), listed({2}), day, month, every(0, 6)), ZoneInfo(name), after)


# A year later to the day the clocks have not yet changed, so that the offset is another one.
SKIPPED_FOR_A_YEAR = at_half_past_two(
    "America/New_York", datetime(2026, 3, 8, tzinfo=UTC), listed({8}), listed({3})
)
# UTC's, and of a day that divides the time since 1970 into equal parts.
CHANGE_AT_MIDNIGHT = at_half_past_two(
    "Europe/Chisinau", datetime(2031, 3, 29, 23, tzinfo=UTC), every(1, 31), every(1, 12)
)


@lru_cache(maxsize=100_000)
def change_after(name: str, year: int, month: int = 1) -> datetime | None:
    start = max(FIRST, datetime(year, month, 1, tzinfo=UTC))
    return oracle.next_change(start, ZoneInfo(name), END)


@st.composite
def instants(draw: st.DrawFn, around: datetime) -> datetime:
    """On a whole minute or just beside it, mostly a little before."""
    near = st.integers(-150, 30)
    minutes = draw(st.one_of(near, near, st.integers(-3 * 1440, 1440)))
    microseconds = draw(st.sampled_from([0, 1, -1, 30_000_000]))
    return around + timedelta(minutes=minutes, microseconds=microseconds)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Around a clock change, if the zone has one."""
    name, year = draw(st.sampled_from(ZONES)), draw(st.integers(1970, 2099))
    change = change_after(name, year, draw(st.sampled_from([1, 6]))) or change_after(name, 1970)
    moment = change or datetime(year, 3, 1, tzinfo=UTC)
    about = lines_about(oracle.local(moment, ZoneInfo(name)))
    line = draw(st.one_of(about, about, about, lines()))
    return Case(line, ZoneInfo(name), draw(instants(moment)))


@settings(repeatable, max_examples=120)
@given(cases())
def test_the_next_fire_is_strictly_later_and_shows_a_time_that_was_asked_for(case):
    for gap, overlap_hour in POLICIES:
        fire = case.next_fire(gap, overlap_hour)
        if fire is not None:
            assert fire > case.after
            shown = f"{oracle.local(fire, case.zone)} with {gap}"
            assert case.explains(fire, gap), shown


@settings(repeatable, max_examples=120)
@given(cases())
@example(SKIPPED_FOR_A_YEAR)
@example(CHANGE_AT_MIDNIGHT)
def test_no_fire_is_skipped_before_the_next_one(case):
    for gap, overlap_hour in POLICIES:
        fire = case.next_fire(gap, overlap_hour)
        if fire is None:
            # Only where the line asks for nothing but times that are left out year after year.
            assert gap == "skip"
            assert case.expected(case.after + 10 * 366 * DAY, gap, overlap_hour) == []
        else:
            assert case.expected(fire, gap, overlap_hour) == [fire]


@settings(repeatable, max_examples=100)
@given(cases(), st.sampled_from(POLICIES), st.integers(2, 12))
def test_the_upcoming_fires_are_those_of_the_oracle_in_order(case, policies, count):
    found = upcoming(parse_trigger(case.line.text), case.after, case.zone, count, *policies)
    found = [fire for fire in found if fire < case.after + 40 * DAY]
    assert all(one < other for one, other in pairwise([case.after, *found]))
    if found:
        assert case.expected(found[-1], *policies) == found


@lru_cache(maxsize=1)
def changes_of_every_zone() -> list[tuple[str, datetime]]:
    """Of each zone a gap and a repeated hour of different years, as far as there have been any."""
    found = []
    for name in ZONES:
        # Seeded with a text, so that it is the same on every machine.
        years = random.Random(name).sample(range(1970, 2100), 5)
        changes = (change_after(name, year) for year in [*years, 1970])
        by_kind = {is_gap(change, name): change for change in changes if change}
        found += [(name, change) for change in by_kind.values()]
    return found


def is_gap(change: datetime, name: str) -> bool:
    before, after = (oracle.local(at, ZoneInfo(name)) for at in (change - SECOND, change))
    return after > before + SECOND


def line_about(change: datetime, name: str) -> Line:
    """Fixed times around what is left out or repeated, and some that are not."""
    chance = random.Random(f"{name} {change}")
    shown = oracle.local(change - SECOND, ZoneInfo(name))
    hours = {(shown + distance * HOUR).hour for distance in chance.sample(range(-1, 3), 2)}
    return Line(
        listed(chance.sample(range(60), 2)),
        listed(hours),
        every(1, 31),
        every(1, 12),
        every(0, 6),
    )


@pytest.mark.parametrize(("gap", "overlap_hour"), POLICIES)
@pytest.mark.slow
def test_every_zone_does_what_the_policies_say_when_its_clocks_change(gap, overlap_hour):
    wrong = []
    for name, change in changes_of_every_zone():
        line, start, end = line_about(change, name), change - 3 * HOUR, change + 26 * HOUR
        chosen = ZoneInfo(name), gap, overlap_hour
        found = fires_between(parse_trigger(line.text), start, end, chosen[0], 100, *chosen[1:])
        if found != oracle.fires(line, start, end, *chosen):
            wrong.append(f"{line.text} in {name} around {change}")
    assert wrong == []


def test_the_zones_that_change_their_clocks_are_all_looked_at():
    """Seen from the other side: those that are not looked at show the same offset every month."""
    looked_at = {name for name, _ in changes_of_every_zone()}
    months = [datetime(1970 + n // 12, n % 12 + 1, 15, tzinfo=UTC) for n in range(12 * 130)]
    for name in set(ZONES) - looked_at:
        assert len({month.astimezone(ZoneInfo(name)).utcoffset() for month in months}) == 1
    assert len(looked_at) > 400
