"""The oracle of the simulations is correct: examples computed by hand."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.simulation.cron_text import CronText
from tests.simulation.ledger import expected
from tests.simulation.meanings import AfterEachRun, ElapsedInterval, LocalTimes, Place

HOUR = timedelta(hours=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def instants(line: str, place: Place, day: str, hours: int = 24) -> list[str]:
    """The instants of the day in UTC, without the date."""
    start = utc(day)
    meaning = LocalTimes(CronText(line), place)
    found = meaning.instants(start - timedelta(seconds=1), start + HOUR * hours)
    return [f"{at:%H:%M}" for at in found]


@pytest.mark.parametrize(
    ("zone", "line", "day", "gap", "found"),
    [
        ("Europe/Berlin", "30 2 * * *", "2026-03-29", "shift", ["01:30"]),
        ("Europe/Berlin", "30 2 * * *", "2026-03-29", "next_valid", ["01:00"]),
        ("Europe/Berlin", "30 2 * * *", "2026-03-29", "skip", []),
        ("Europe/Berlin", "30 2,3 * * *", "2026-03-29", "shift", ["01:30"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03", "shift", ["15:45"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03", "next_valid", ["15:30"]),
        ("Africa/Cairo", "0 0 * * *", "2026-04-23", "shift", ["22:00"]),
        ("America/Santiago", "0 0 * * 0", "2026-09-06", "skip", []),
        ("America/Santiago", "5 0 * * 0", "2026-09-06", "next_valid", ["04:00"]),
        ("Pacific/Apia", "0 9 * * *", "2011-12-30", "shift", ["19:00"]),
    ],
)
def test_the_oracle_follows_the_gap_policy_at_a_skipped_time(zone, line, day, gap, found):
    assert instants(line, Place(ZoneInfo(zone), gap, "first"), day) == found


@pytest.mark.parametrize(
    ("zone", "line", "day", "overlap_hour", "found"),
    [
        ("Europe/Berlin", "30 2 * * *", "2026-10-25", "first", ["00:30"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-25", "second", ["01:30"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-25", "both", ["00:30", "01:30"]),
        ("Europe/Berlin", "*/30 2 * * *", "2026-10-25", "first", ["00:00", "00:30"] * 2),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04", "both", ["14:45", "15:15"]),
        ("Africa/Cairo", "30 23 * * *", "2026-10-29", "both", ["20:30", "21:30"]),
    ],
)
def test_the_oracle_follows_the_overlap_policy_at_a_repeated_time(
    zone, line, day, overlap_hour, found
):
    if line.startswith("*"):  # follows the real clock with every policy
        found = ["00:00", "00:30", "01:00", "01:30"]
    assert instants(line, Place(ZoneInfo(zone), "shift", overlap_hour), day) == found


@pytest.mark.parametrize(
    ("line", "days"),
    [
        ("0 12 13 * 5", [2, 9, 13, 16, 23, 30]),
        ("0 12 L * *", [31]),
        ("0 12 * * 5L", [30]),
        ("0 12 * * mon#2", [12]),
        ("0 12 */10 1-6 *", [1, 11, 21, 31]),
        ("0 12 ? jan 7", [4, 11, 18, 25]),
        ("0 12 5-20/7 * *", [5, 12, 19]),
        ("0 12 30/1 * *", [30, 31]),
        ("0 12 * 2 *", []),
    ],
)
def test_the_oracle_finds_the_days_of_a_cron_line(line, days):
    first, last = utc("2026-01-01").date(), utc("2026-01-31").date()
    assert [wall.day for wall in CronText(line).walls(first, last)] == days


def test_the_oracle_ignores_clock_changes_for_elapsed_intervals():
    start = utc("2026-01-01")
    found = ElapsedInterval(HOUR * 9).instants(start, start + HOUR * 27)
    assert found == [start + HOUR * 9, start + HOUR * 18, start + HOUR * 27]


def test_an_interval_waits_for_the_end_of_its_run():
    """Claims every hour: the interval waits three hours after a run of five hours."""
    start = utc("2026-01-01")
    claims = [start + HOUR * hour for hour in range(20)]
    found = AfterEachRun(HOUR * 3, HOUR * 5).claims(start, claims)
    assert [at for at, _ in found] == [start, start + HOUR * 8, start + HOUR * 16]


@pytest.mark.parametrize(
    ("catch_up", "window", "fired"),
    [
        ("all", HOUR * 9, [1, 2, 3, 4, 5, 6]),
        ("all", HOUR * 2, [1, 4, 5, 6]),
        ("last", HOUR * 2, [1, 6]),
        ("skip", HOUR * 2, [1]),
    ],
)
def test_the_oracle_applies_the_catch_up_policy_after_a_downtime(catch_up, window, fired):
    """Claims after one hour and after six and a half hours."""
    start = utc("2026-01-01")
    due = [start + HOUR * hour for hour in range(1, 9)]
    ledger = expected(due, [start + HOUR, start + HOUR * 6.5], catch_up, window + HOUR / 2)
    assert [(at - start) / HOUR for at, _, fires in ledger.entries if fires] == fired
    assert ledger.fire_count + ledger.missed_count == len(ledger.entries) == 6
