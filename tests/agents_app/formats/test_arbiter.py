"""Schedules of Arbiter: added to agents of the same name that the project already has."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agents_app.formats.arbiter import read_arbiter
from agents_app.formats.imported import Imported
from agents_app.formats.write_agents import AgentWriter
from agents_app.skills import discover_project
from tests.agents_app.formats.reading import CONTEXT, NOW, lines_of, new_month, old_month

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 11, 23, 9, 0, tzinfo=BERLIN)
ROW = {
    "id": 17,
    "agent_id": "vera",
    "conversation_id": 0,
    "message": "summarise the week's PRs",
    "schedule_phrase": "every monday at 09:00",
    "schedule_kind": "recurring",
    "fire_at": 0,
    "recur_json": "{}",
    "next_fire_at": int(MONDAY.timestamp()),
    "status": "active",
    "created_at": 1746720000,
    "run_count": 0,
}
SKILL = "---\nharness: shell\nschedules:\n  own:\n    interval: 5m\n---\ntrue\n"


def read(*rows: Any) -> Imported:
    return read_arbiter("a.json", json.dumps({"schedules": rows}, indent=1), CONTEXT)


def at(days: int = 0, **parts: int) -> int:
    return int((NOW.astimezone(BERLIN) + timedelta(days=days)).replace(**parts).timestamp())


@pytest.mark.parametrize(
    ("phrase", "first", "step"),
    [
        ("every monday at 09:00", MONDAY, timedelta(days=7)),
        ("every week on monday at 09:00", MONDAY, timedelta(days=7)),
        ("weekly", MONDAY, timedelta(days=7)),
        ("every day at 10:45", datetime(2026, 11, 18, 10, 45, tzinfo=BERLIN), timedelta(days=1)),
        # Arbiter has chosen the time of a phrase without one.
        ("daily", datetime(2026, 11, 19, 0, 0, tzinfo=BERLIN), timedelta(days=1)),
    ],
)
def test_calendar_phrases_fire_for_a_month_as_arbiter_does(phrase, first, step):
    row = ROW | {"schedule_phrase": phrase, "next_fire_at": int(first.timestamp())}
    (agent,) = read(row).agents
    (schedule,) = agent.schedules
    count = (timedelta(days=30) - (first - NOW)) // step + 1
    expected = [(first + number * step).astimezone(UTC) for number in range(count)]
    assert old_month(schedule, NOW) == expected
    assert new_month(schedule, NOW) == expected


def test_intervals_have_the_same_length():
    row = ROW | {"schedule_phrase": "Every 15 minutes", "next_fire_at": int(NOW.timestamp()) + 60}
    (agent,) = read(row).agents
    (schedule,) = agent.schedules
    assert schedule.expression == "every 15 minutes"
    assert old_month(schedule, NOW)[:2] == [
        NOW + timedelta(minutes=1),
        NOW + timedelta(minutes=16),
    ]


def test_a_single_time_is_an_instant():
    row = ROW | {"schedule_phrase": "in 1 hour", "schedule_kind": "one_shot"}
    (agent,) = read(row).agents
    assert agent.schedules[0].expression == "2026-11-23T08:00:00Z"
    over = read(row | {"next_fire_at": 5})
    assert (over.agents, lines_of(over.report, "next_fire_at")) == ((), [3])


def test_a_paused_schedule_stays_paused_and_ended_ones_are_left_out():
    found = read(ROW | {"status": "paused"}, ROW | {"status": "completed", "id": 18})
    (agent,) = found.agents
    assert [schedule.settings["enabled"] for schedule in agent.schedules] == [False]
    assert len(lines_of(found.report, "status")) == 2


def test_a_conversation_and_unknown_fields_are_reported():
    found = read(ROW | {"conversation_id": 4, "flavour": "sweet"})
    assert {line.field for line in found.report} == {"conversation_id", "flavour"}


@pytest.mark.parametrize(
    "change",
    [
        {"message": 5},
        {"message": ""},
        {"schedule_phrase": "every blue moon"},
        {"schedule_phrase": None},
        {"agent_id": "Vera Miller"},
        {"agent_id": ["vera"]},
        {"status": 7},
    ],
)
def test_a_wrong_row_is_reported_and_the_others_are_read(change):
    found = read(ROW, ROW | change)
    assert [len(agent.schedules) for agent in found.agents] == [1]
    assert [error.line for error in found.errors] == [17]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "agents/vera").mkdir(parents=True)
    (tmp_path / "agents/vera/SKILL.md").write_text(SKILL)
    return tmp_path


def write(project: Path, *rows: Any, enable: bool = False) -> Any:
    agents = read(*rows).agents
    return AgentWriter(project, "a.json", "a.json", enable=enable).write(agents, dry_run=False)


def test_schedules_are_added_to_the_agent_and_off_until_enabled(project: Path):
    write(project, ROW)
    (agent,) = discover_project(project).agents
    enabled = {schedule.name: schedule.enabled for schedule in agent.schedules}
    assert (agent.scale, enabled) == (1, {"own": True, "arbiter-17": False})
    write(project, ROW, enable=True)
    (agent,) = discover_project(project).agents
    assert [schedule.enabled for schedule in agent.schedules] == [True, True]
    assert agent.schedules[1].prompt == "summarise the week's PRs"
    assert (project / "agents/vera/SKILL.md").read_text() == SKILL


def test_a_missing_agent_is_reported(project: Path):
    result = write(project, ROW, ROW | {"agent_id": "otto"})
    assert [error.field for error in result.errors] == ["agent"]
    assert "there is no agent 'otto'" in result.errors[0].why
    assert not (project / "agents/otto").exists()


def test_a_config_of_a_person_is_left(project: Path):
    (project / "agents/vera/config.toml").write_text("scale = 3\n")
    result = write(project, ROW)
    assert (project / "agents/vera/config.toml").read_text() == "scale = 3\n"
    assert [line.file for line in result.report] == ["agents/vera/config.toml"]
