"""Invalid options, agents and updates: refused with what is wrong and where."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agents_app import scheduler
from agents_app.scheduler import (
    SKIP_REASONS,
    RunScheduleOptions,
    Scheduler,
    SchedulerError,
    StopOptions,
)
from agents_app.scheduler.agents import read_agents
from agents_app.scheduler.schedule_rows import _check_updates
from agents_app.scheduler.setup import _variables


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"check_interval": 0}, "check_interval: expected seconds, more than 0 to 86400, not 0"),
        ({"check_interval": "1s"}, "check_interval: expected seconds"),
        ({"check_interval": True}, "check_interval: expected seconds"),
        ({"check_interval": float("nan")}, "check_interval: expected seconds"),
        ({"state": 5}, "state: expected a directory or the URL of a database, not int"),
        ({"state": " "}, "state: is empty"),
        ({"on_trigger": "print"}, "on_trigger: expected a function with one argument, not str"),
        ({"logger": object()}, r"logger: object has no method debug\(\)"),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused_at_once(options: Any, problem: str):
    with pytest.raises(SchedulerError, match=problem):
        Scheduler(**options)


def test_the_options_of_a_stop_and_of_a_run_are_checked():
    with pytest.raises(SchedulerError, match="wait_for_jobs: expected True or False, not 'no'"):
        StopOptions(wait_for_jobs="no")  # type: ignore[arg-type]
    with pytest.raises(SchedulerError, match="timeout: expected seconds, 0 to 86400, not -1"):
        StopOptions(timeout=-1)
    with pytest.raises(SchedulerError, match="timeout: expected seconds"):
        RunScheduleOptions(timeout=0)
    assert StopOptions(timeout=0).timeout == 0


def test_a_state_that_is_no_directory_and_no_database_is_refused(tmp_path: Path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(SchedulerError, match=f"state: {file} is not a directory"):
        _variables(file)
    with pytest.raises(SchedulerError, match="state: a URL that starts with 'redis'") as refused:
        _variables("redis://:secret@host")
    assert "secret" not in str(refused.value)


def test_every_export_of_herdctl_has_a_name_in_python():
    values = "parse_interval calculate_next_trigger is_schedule_due get_schedule_state"
    values += " update_schedule_state get_agent_schedule_states run_schedule build_schedule_prompt"
    types = "Scheduler SchedulerOptions SchedulerStatus SchedulerState SchedulerLogger TriggerInfo"
    types += " ScheduleCheckResult ScheduleSkipReason SchedulerTriggerCallback AgentScheduleInfo"
    types += " StopOptions RunScheduleOptions ScheduleRunResult ScheduleRunnerLogger"
    types += " TriggerMetadata ScheduleStateLogger ScheduleStateOptions ScheduleStateUpdates"
    errors = "SchedulerError IntervalParseError ScheduleTriggerError SchedulerShutdownError"
    names = f"{values} {types} {errors}".split()
    assert set(names) <= set(scheduler.__all__)
    assert all(hasattr(scheduler, name) for name in scheduler.__all__)


def test_every_skip_reason_of_herdctl_is_one_of_the_scheduler():
    reasons = {"unsupported_type", "disabled", "already_running", "at_capacity", "not_due"}
    assert reasons < set(SKIP_REASONS)


@pytest.mark.parametrize(
    ("agents", "problem"),
    [
        (5, "agents: expected a list of tables or a project directory, not a value of type int"),
        ({"name": "a"}, "agents: expected a list of tables"),
        (["a"], r"agents\[0\]: expected a table with `name`, not a value of type str"),
        ([{}], r"agents\[0\]: `name` is missing or no text"),
        ([{"name": "A b", "command": "x"}], r"agents\[0\] \(A b\)"),
        ([{"name": "a"}], r"agents\[0\] \(a\): no command: set `command`"),
        ([{"name": "a", "comand": "x"}], r"agents\[0\] \(a\): comand: .*did you mean 'command'"),
        ([{"name": "a", "command": "x", "params": {"f": print}}], r"agents\[0\]: values must be"),
        ([{"name": "a", "command": "x\0"}], r"agents\[0\]: a NUL character"),
        ([{"name": "a", "command": "x", "directory": "/none"}], "directory: '/none' is not an"),
        (
            [{"name": "a", "command": "x", "schedules": {"s": {"interval": "5x"}}}],
            r"agents\[0\] \(a\): schedules.s.interval: Invalid time unit",
        ),
        ([{"name": "a", "command": "x"}] * 2, r"agents\[1\]: another agent has the name 'a'"),
        ("/no/such/project", "agents: /no/such/project is not a directory"),
    ],
)
def test_an_agent_that_cannot_be_used_is_refused_with_its_place(agents: Any, problem: str):
    with pytest.raises(SchedulerError, match=problem):
        read_agents(agents, needs_command=True)


def test_all_errors_of_all_agents_are_reported_at_once():
    with pytest.raises(SchedulerError) as refused:
        read_agents([{"name": "a"}, {"name": "b", "scale": -1, "command": "x"}], needs_command=True)
    first, second = str(refused.value).splitlines()
    assert first.startswith("agents[0] (a)")
    assert second.startswith("agents[1] (b): scale")


def test_errors_of_a_project_directory_have_file_and_line(tmp_path: Path):
    directory = tmp_path / "agents" / "bad"
    directory.mkdir(parents=True)
    (directory / "SKILL.md").write_text("---\ncommand: x\nscale: many\n---\n")
    with pytest.raises(SchedulerError, match=r"agents/bad/SKILL.md:3: scale"):
        read_agents(tmp_path, needs_command=True)


@pytest.mark.parametrize(
    ("updates", "problem"),
    [
        ({}, "updates: give at least one value"),
        ({"stats": "idle"}, "updates: there is no value 'stats': did you mean 'status'"),
        ({"status": "running"}, "status: expected idle or disabled, not 'running'"),
        ({"next_run_at": "2026-01-01"}, "next_run_at: expected a datetime with a time zone"),
        ({"last_error": 5}, "last_error: expected a text or None, not 5"),
    ],
)
def test_an_update_that_has_no_meaning_is_refused(updates: Mapping[str, Any], problem: str):
    with pytest.raises(SchedulerError, match=problem):
        _check_updates(updates)
