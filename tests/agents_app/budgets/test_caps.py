"""Caps and the windows they hold for: whose midnight, which month, and what counts."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app.budgets.caps import day_of, day_window, month_window, run_is_over, used_up
from agents_app.harness.usage import Spending

BERLIN = ZoneInfo("Europe/Berlin")


def test_every_token_counts_once():
    assert Spending(1, 20, 300).tokens == 321
    both = Spending(1, 2, 3, Decimal("0.1")) + Spending(1, 1, 1, Decimal("0.2"))
    assert both == Spending(2, 3, 4, Decimal("0.3"))


@pytest.mark.parametrize(
    ("caps", "over"),
    [
        ({}, ""),
        ({"tokens_per_run": 100}, ""),
        ({"tokens_per_run": 99}, "budget: 100 tokens used, at most 99 per run"),
        ({"usd_per_run": 1.5}, ""),
        ({"usd_per_run": 1.49}, "budget: $1.50 spent, at most $1.49 per run"),
        ({"tokens_per_day": 1, "usd_per_month": 1}, ""),
    ],
)
def test_a_run_is_over_its_cap_when_it_used_more(caps, over):
    assert run_is_over(caps, 100, Decimal("1.5")) == over


@pytest.mark.parametrize(
    ("caps", "window", "passed"),
    [
        ({"tokens_per_day": 1001}, "day", ""),
        ({"tokens_per_day": 1000}, "day", "budget: 1,000 of 1,000 tokens per day used"),
        ({"usd_per_month": 1.51}, "month", ""),
        ({"usd_per_month": 1.5}, "month", "budget: $1.50 of $1.50 per month spent"),
        ({"usd_per_month": 1.5}, "day", ""),
    ],
)
def test_a_window_is_used_up_when_nothing_is_left(caps, window, passed):
    assert used_up(caps, window, 1000, Decimal("1.5")) == passed


def test_a_day_is_that_of_the_zone():
    late = datetime(2026, 3, 2, 23, 30, tzinfo=UTC)
    assert (day_of(late, UTC), day_of(late, BERLIN)) == (date(2026, 3, 2), date(2026, 3, 3))
    assert day_window(late, BERLIN).ends_at == datetime(2026, 3, 3, 23, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("day", "hours"), [(date(2026, 3, 29), 23), (date(2026, 3, 30), 24), (date(2026, 10, 25), 25)]
)
def test_a_day_is_as_long_as_its_clocks_make_it(day, hours):
    begun = datetime(day.year, day.month, day.day, tzinfo=BERLIN)
    assert day_window(begun, BERLIN).ends_at - begun.astimezone(UTC) == timedelta(hours=hours)


def test_a_day_that_has_no_midnight_begins_when_the_one_before_it_ends():
    cairo = ZoneInfo("Africa/Cairo")
    before = datetime(2026, 4, 23, 21, 59, 59, tzinfo=UTC)  # the clocks go from 24:00 to 01:00
    ends_at = day_window(before, cairo).ends_at
    assert ends_at == before + timedelta(seconds=1)
    assert day_of(ends_at, cairo) == date(2026, 4, 24)


@pytest.mark.parametrize(
    ("now", "last", "ends"),
    [
        ("2026-01-31", "2026-01-31", "2026-02-01"),
        ("2026-02-28", "2026-02-28", "2026-03-01"),
        ("2028-02-29", "2028-02-29", "2028-03-01"),
        ("2026-12-31", "2026-12-31", "2027-01-01"),
    ],
)
def test_a_month_ends_with_its_last_day(now, last, ends):
    window = month_window(datetime.fromisoformat(f"{now}T23:59:59+00:00"), UTC)
    assert (window.first.day, window.last) == (1, date.fromisoformat(last))
    assert window.ends_at == datetime.fromisoformat(f"{ends}T00:00:00+00:00")


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)),
    st.sampled_from(["UTC", "Europe/Berlin", "America/Havana", "Pacific/Apia", "Asia/Beirut"]),
)
def test_windows_follow_each_other_without_a_gap(now, name):
    zone = ZoneInfo(name)
    for window_of in (day_window, month_window):
        window = window_of(now, zone)
        assert window.ends_at > now
        assert window.first <= day_of(now, zone) <= window.last
        instant_before = window.ends_at - timedelta(microseconds=1)
        assert day_of(instant_before, zone) <= window.last < day_of(window.ends_at, zone)
        assert window_of(window.ends_at, zone).first == window.last + timedelta(days=1)
