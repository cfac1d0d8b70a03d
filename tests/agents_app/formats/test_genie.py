"""Schedules of Genie as agents: cron, intervals, single times, and rows with wrong values."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents_app.formats.genie import read_genie
from agents_app.formats.imported import Imported
from tests.agents_app.formats.reading import CONTEXT, NOW, lines_of, new_month, old_month

ROW = {
    "id": "sched-1",
    "name": "daily-review",
    "cron_expression": "0 9 * * 1-5",
    "command": "genie spawn reviewer",
    "timezone": "America/New_York",
    "status": "active",
    "run_spec": {},
}


def read(*rows: Any) -> Imported:
    return read_genie("genie.json", json.dumps(rows, indent=1), CONTEXT)


def genie_fires(
    minutes: set[int], hours: set[int], days: set[int], weekdays: set[int], either: bool
) -> list[datetime]:
    """Every minute of 30 days in UTC, as Genie looks at them."""
    found = []
    for number in range(1, 30 * 24 * 60 + 1):
        at = NOW.replace(second=0) + timedelta(minutes=number)
        by_day, by_weekday = at.day in days, at.isoweekday() % 7 in weekdays
        day = (by_day or by_weekday) if either else (by_day and by_weekday)
        if at.minute in minutes and at.hour in hours and day:
            found.append(at)
    return found


ALL_HOURS, ALL_DAYS, ALL_WEEKDAYS = set(range(24)), set(range(1, 32)), set(range(7))


@pytest.mark.parametrize(
    ("cron", "minutes", "hours", "days", "weekdays", "either"),
    [
        ("*/10 * * * *", {0, 10, 20, 30, 40, 50}, ALL_HOURS, ALL_DAYS, ALL_WEEKDAYS, False),
        ("0 9 * * 1-5", {0}, {9}, ALL_DAYS, {1, 2, 3, 4, 5}, False),
        ("5 1-5/2 * * *", {5}, {1, 3, 5}, ALL_DAYS, ALL_WEEKDAYS, False),
        # Genie takes either day here, unlike Debian's cron.
        ("0 0 */10 * 1", {0}, {0}, {1, 11, 21, 31}, {1}, True),
        ("0 0 1,15 * 5", {0}, {0}, {1, 15}, {5}, True),
    ],
)
def test_a_cron_schedule_fires_for_a_month_as_genie_does(
    cron, minutes, hours, days, weekdays, either
):
    (agent,) = read(ROW | {"cron_expression": cron, "timezone": "UTC"}).agents
    (schedule,) = agent.schedules
    expected = genie_fires(minutes, hours, days, weekdays, either)
    assert old_month(schedule, NOW) == expected
    assert new_month(schedule, NOW) == expected


def test_a_row_is_an_agent_named_after_it():
    (agent,) = read(ROW).agents
    assert (agent.name, agent.body, agent.line) == ("daily-review", "genie spawn reviewer", 2)
    (schedule,) = agent.schedules
    assert (schedule.name, schedule.timezone) == ("daily-review", "America/New_York")


def test_clock_changes_are_handled_as_genie_does():
    """It looks at each minute of the real clock: a skipped time is left out, others fire twice."""
    (agent,) = read(ROW | {"cron_expression": "30 1,2 * * *"}).agents
    (schedule,) = agent.schedules
    spring = datetime(2027, 3, 14, 0, 0, tzinfo=UTC)
    assert [fire.isoformat()[5:16] for fire in new_month(schedule, spring)[:3]] == [
        "03-14T06:30",
        "03-15T05:30",
        "03-15T06:30",
    ]
    autumn = datetime(2026, 11, 1, 0, 0, tzinfo=UTC)
    assert [fire.isoformat()[5:16] for fire in new_month(schedule, autumn)[:3]] == [
        "11-01T05:30",
        "11-01T06:30",
        "11-01T07:30",
    ]
    for start in (spring, autumn):
        assert old_month(schedule, start) == new_month(schedule, start)


def test_rows_with_one_command_share_an_agent():
    found = read(ROW, ROW | {"id": "2", "name": "evening", "cron_expression": "0 18 * * *"})
    (agent,) = found.agents
    assert [schedule.name for schedule in agent.schedules] == ["daily-review", "evening"]


def test_intervals_count_from_the_start():
    (agent,) = read(
        ROW | {"cron_expression": "@every 1.5h", "next_due": "2026-11-18T10:00:00Z"}
    ).agents
    (schedule,) = agent.schedules
    assert schedule.expression == "every 90 minutes"
    assert old_month(schedule, NOW)[:2] == [NOW + timedelta(minutes=30), NOW + timedelta(hours=2)]


def test_a_single_time_in_the_future_is_imported():
    row = ROW | {"cron_expression": "@once", "next_due": "2027-01-02T08:00:00+01:00"}
    (agent,) = read(row).agents
    assert agent.schedules[0].expression == "2027-01-02T07:00:00Z"
    assert old_month(agent.schedules[0], datetime(2027, 1, 1, tzinfo=UTC)) == [
        datetime(2027, 1, 2, 7, tzinfo=UTC)
    ]


@pytest.mark.parametrize("due", [None, "2020-01-01T00:00:00Z", "soon", 5])
def test_a_single_time_that_is_over_is_reported(due):
    found = read(ROW | {"cron_expression": "@once", "next_due": due})
    assert (found.agents, lines_of(found.report, "cron_expression")) == ((), [2])


def test_a_paused_schedule_is_imported_disabled():
    (agent,) = read(ROW | {"status": "paused"}).agents
    assert agent.schedules[0].settings["enabled"] is False


def test_fields_without_a_counterpart_are_reported():
    found = read(
        ROW
        | {
            "run_spec": json.dumps({"lease_timeout_ms": 5000}),
            "colour": "red",
            "command": "echo $GENIE_TRACE_ID",
            "cron_expression": "0 9 * * 1-5 2030",
        }
    )
    fields = {line.field for line in found.report}
    assert fields == {"run_spec.lease_timeout_ms", "colour", "GENIE_TRACE_ID", "cron_expression"}
    assert found.agents[0].schedules[0].expression == "0 9 * * 1-5"


@pytest.mark.parametrize(
    "change",
    [
        {"name": None},
        {"name": 5},
        {"command": ["ls"]},
        {"command": ""},
        {"cron_expression": {}},
        {"cron_expression": "61 * * * *"},
        {"cron_expression": "@every soon"},
        {"cron_expression": "@every 0.5s"},
        {"timezone": "Mars/Olympus"},
        {"timezone": 3},
    ],
)
def test_a_wrong_row_is_reported_with_its_line_and_the_others_are_read(change):
    found = read(ROW, ROW | change, ROW | {"command": "true"})
    assert [agent.body for agent in found.agents] == ["genie spawn reviewer", "true"]
    assert [error.line for error in found.errors] == [11]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[\n{]", 2),
        ("[1,\n2]", 1),
        ('[\n\n{"name": "x"', 3),
        ("[", 1),
        ("[" * 100_000, 1),
        ('{"schedules": [\n null]}', 2),
        ("\x00", 1),
        ("nonsense", 1),
        (f"[{'9' * 5000}]", 1),
    ],
)
def test_text_that_is_not_json_is_reported(text, line):
    found = read_genie("genie.json", text, CONTEXT)
    assert found.agents == ()
    assert found.errors[0].line == line


def test_one_object_a_line_is_read():
    text = "\n".join(json.dumps(ROW | {"command": f"echo {n}"}) for n in range(3))
    assert len(read_genie("genie.json", text, CONTEXT).agents) == 3
