"""Rates and percentiles of runs, in all and by day."""

from datetime import date, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app.reports.statistics import EndedRun, percentile, summarize_days, summarize_runs
from tests.agents_app.fleet import NOON, at


def ended(seconds: float | None, state: str = "succeeded", days: float = 0) -> EndedRun:
    over = at(days=days)
    started = None if seconds is None else over - timedelta(seconds=seconds)
    return EndedRun(state, started, over)


def test_a_percentile_is_a_value_that_occurred():
    values = [float(number) for number in range(1, 101)]
    assert (percentile(values, 0.5), percentile(values, 0.95)) == (50, 95)
    assert percentile([7.0], 0.95) == 7
    assert percentile([], 0.5) is None


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30), st.sampled_from([0.5, 0.95]))
def test_the_given_share_of_values_is_at_most_the_percentile(values: list[int], share: float):
    found = percentile(sorted(values), share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)


def test_a_run_that_never_started_counts_but_has_no_duration():
    summary = summarize_runs([ended(10), ended(20, "failed"), ended(None, "stopped")])
    assert (summary.runs, summary.succeeded, summary.others) == (3, 1, 2)
    assert (summary.p50, summary.p95) == (10, 20)
    assert summary.rate == pytest.approx(1 / 3)


def test_without_runs_there_is_no_rate():
    summary = summarize_runs([])
    assert (summary.runs, summary.rate, summary.p50) == (0, None, None)


def test_days_are_days_of_the_zone_and_include_days_without_runs():
    runs = [ended(1), ended(2, "failed"), ended(3, days=-1)]
    used = {NOON.date(): (1200, Decimal("0.5"))}
    days = summarize_days(runs, used, NOON.date(), 3, ZoneInfo("UTC"))
    assert [day.day for day in days] == [date(2026, 2, 28), date(2026, 3, 1), date(2026, 3, 2)]
    assert [day.summary.runs for day in days] == [0, 1, 2]
    assert (days[-1].tokens, days[-1].cost_usd) == (1200, Decimal("0.5"))
    # At noon in London it is tomorrow on Kiritimati.
    (there,) = summarize_days(runs, {}, date(2026, 3, 3), 1, ZoneInfo("Pacific/Kiritimati"))
    assert there.summary.runs == 2
