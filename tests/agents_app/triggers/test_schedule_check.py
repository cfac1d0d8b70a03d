"""Whether a schedule fires now, and in which order the reasons against it count."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agents_app.triggers import CheckedSchedule, ScheduleCheck, check_schedule, zone

NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
INTERVAL = CheckedSchedule("mine", "interval", interval="5m")
CRON = CheckedSchedule("mine", "cron", cron="0 * * * *")
FIRES = ScheduleCheck(should_trigger=True)


def check(
    schedule: CheckedSchedule, running: tuple[str, ...] = (), at_most: int = 1, now: datetime = NOW
) -> ScheduleCheck:
    return check_schedule(schedule, running, at_most, now)


def test_the_first_of_several_reasons_is_returned():
    """Each step takes away the reason that came before."""
    bad = CheckedSchedule("mine", "chat", enabled=False, status="disabled")
    steps = [
        (bad, ("mine",), "disabled"),
        (replace(bad, enabled=True), ("mine",), "unsupported_type"),
        (replace(bad, enabled=True, type="interval"), ("mine",), "disabled"),
        (replace(INTERVAL, interval=None), ("mine",), "already_running"),
        (replace(INTERVAL, interval=None), ("other",), "at_capacity"),
        (replace(INTERVAL, interval=None), (), "unsupported_type"),
        (replace(INTERVAL, last_run_at=NOW), (), "not_due"),
    ]
    for schedule, running, reason in steps:
        found = check(schedule, running)
        assert (found.should_trigger, found.skip_reason) == (False, reason)
    assert check(INTERVAL) == FIRES


def test_a_free_place_beside_another_schedule_is_taken():
    assert check(INTERVAL, ("other",), 2) == FIRES
    assert check(INTERVAL, (), 0).skip_reason == "at_capacity"


def test_what_a_crash_left_running_does_not_block():
    assert check(replace(INTERVAL, status="running")) == FIRES


@pytest.mark.parametrize(("minutes", "due"), [(4, False), (5, True), (60, True), (-10, False)])
def test_an_interval_counts_from_the_last_completion(minutes, due):
    schedule = replace(INTERVAL, last_run_at=NOW - timedelta(minutes=minutes))
    assert check(schedule).should_trigger is due


@pytest.mark.parametrize("interval", ["bogus", "0m", "99999999999999999d"])
def test_a_bad_interval_shows_at_the_second_run(interval):
    schedule = replace(INTERVAL, interval=interval)
    assert check(schedule) == FIRES
    assert check(replace(schedule, last_run_at=NOW)).skip_reason == "unsupported_type"


@pytest.mark.parametrize("cron", [None, "", "61 * * * *", "0 0 30 2 *", "hourly"])
def test_a_bad_cron_expression_never_fires(cron):
    assert check(replace(CRON, cron=cron)).skip_reason == "unsupported_type"


@pytest.mark.parametrize(
    ("last", "due"),
    [
        (NOW - timedelta(days=5), True),
        (NOW - timedelta(hours=1), True),
        (NOW, False),
        (NOW + timedelta(hours=3), False),
    ],
)
def test_cron_is_due_at_its_first_match_after_the_last_completion(last, due):
    assert check(replace(CRON, last_run_at=last)).should_trigger is due


@pytest.mark.parametrize(
    ("cron", "seconds", "due"),
    [
        ("0 * * * *", 0, False),
        ("0 * * * *", 0.001, True),
        ("0 * * * *", 60, True),
        ("0 * * * *", 60.001, False),
        ("0 12 * * *", 300, True),
        ("0 12 * * *", 300.001, False),
        ("*/5 * * * *", 5, True),
        ("*/5 * * * *", 5.001, False),
        ("* * * * *", 30, True),
        ("* * * * *", 30.001, False),
    ],
)
def test_a_new_cron_schedule_takes_a_match_that_is_only_just_over(cron, seconds, due):
    schedule = replace(CRON, cron=cron)
    assert check(schedule, now=NOW + timedelta(seconds=seconds)).should_trigger is due


def test_cron_is_read_in_the_zone_that_is_given():
    noon_in_berlin = NOW - timedelta(minutes=59)
    schedule = replace(CRON, cron="0 12 * * *")
    assert check_schedule(schedule, (), 1, noon_in_berlin, zone("Europe/Berlin")) == FIRES
