"""The fires of a schedule day by day: few are named, many are a band, clock changes count."""

from datetime import UTC, date, datetime, timedelta

import pytest

from agents_app.triggers import parse_trigger, zone
from agents_app.triggers.preview import ClockRule, FiresOfDay, days_from, fires_by_day

BERLIN = zone("Europe/Berlin")
MONDAY = date(2026, 3, 2)


def berlin(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=BERLIN).astimezone(UTC)


def week(text: str, armed: datetime, first: date = MONDAY) -> list[FiresOfDay | None]:
    return fires_by_day(ClockRule(parse_trigger(text), BERLIN), armed, days_from(first, 7, BERLIN))


def test_a_daily_schedule_has_one_fire_on_each_day_from_its_next_one_on():
    found = week("0 9 * * *", berlin(4, 9))
    assert found[:2] == [None, None]
    assert [each and each.fires for each in found[2:4]] == [(berlin(4, 9),), (berlin(5, 9),)]
    assert all(found[2:])


def test_what_fires_every_minute_is_one_band_a_day():
    found = week("* * * * *", berlin(2, 13, 5))
    assert found[0] == FiresOfDay(band=(berlin(2, 13, 5), berlin(2, 23, 59)))
    assert found[6] == FiresOfDay(band=(berlin(8, 0), berlin(8, 23, 59)))


def test_four_times_are_named_and_five_are_a_band():
    four, five = week("0 0,6,12,18 * * *", berlin(2, 0)), week("0 9-13 * * *", berlin(2, 9))
    assert four[1] and len(four[1].fires) == 4 and four[1].band is None
    assert five[1] and five[1].fires == () and five[1].first == berlin(3, 9)


def test_an_interval_counts_on_over_midnight():
    found = week("every 10 hours", berlin(2, 5))
    hours = [[at.astimezone(BERLIN).hour for at in each.fires] for each in found[:3] if each]
    assert hours == [[5, 15], [1, 11, 21], [7, 17]]


def test_a_one_shot_is_there_once():
    found = week("at 2026-03-05T12:00:00Z", datetime(2026, 3, 5, 12, tzinfo=UTC))
    assert [bool(each) for each in found] == [False] * 3 + [True] + [False] * 3


@pytest.mark.parametrize(("first", "hours"), [(date(2026, 3, 29), 23), (date(2026, 10, 25), 25)])
def test_a_day_on_which_the_clocks_change_is_shorter_or_longer(first: date, hours: int):
    (day,) = days_from(first, 1, BERLIN)
    assert day.end - day.start == timedelta(hours=hours)


def test_a_time_that_the_clocks_leave_out_is_on_the_same_day_still():
    armed = berlin(28, 2, 30)
    found = week("30 2 * * *", armed, date(2026, 3, 28))
    assert found[1] and [at.astimezone(BERLIN).hour for at in found[1].fires] == [3]
