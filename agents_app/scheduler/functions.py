"""Functions of the Python API that need no running scheduler; each names the state it is about."""

from collections.abc import Mapping
from typing import Any

from agents_app.scheduler.setup import open_state
from agents_app.scheduler.values import (
    RunScheduleOptions,
    ScheduleCheckResult,
    SchedulerLogger,
    ScheduleRunResult,
    ScheduleState,
    ScheduleStateOptions,
    ScheduleStateUpdates,
    State,
    default_logger,
)


def get_schedule_state(
    state: State, agent: str, schedule: str, options: ScheduleStateOptions | None = None
) -> ScheduleState:
    """The state of a schedule; raises SchedulerError if there is no such agent or schedule."""
    found = open_state(state).schedule_state(agent, schedule)
    _logger(options).debug(f"{agent}/{schedule}: the state is {found}")
    return found


def get_agent_schedule_states(
    state: State, agent: str, options: ScheduleStateOptions | None = None
) -> dict[str, ScheduleState]:
    """The states of all schedules of an agent by their names."""
    found = open_state(state).agent_schedule_states(agent)
    _logger(options).debug(f"{agent}: the states of {len(found)} schedules were read")
    return found


def update_schedule_state(
    state: State,
    agent: str,
    schedule: str,
    updates: ScheduleStateUpdates,
    options: ScheduleStateOptions | None = None,
) -> ScheduleState:
    """Change the given values and return the new state."""
    changed = open_state(state).update_schedule_state(agent, schedule, updates)
    _logger(options).info(f"{agent}/{schedule}: the state was changed to {changed}")
    return changed


def _logger(options: ScheduleStateOptions | None) -> SchedulerLogger:
    return (options.logger if options else None) or default_logger()


def check_schedule(state: State, agent: str, schedule: str) -> ScheduleCheckResult:
    """Whether the schedule would start a run at this moment, or why not."""
    return open_state(state).check_schedule(agent, schedule)


def run_schedule(
    state: State, agent: str, schedule: str, options: RunScheduleOptions | None = None
) -> ScheduleRunResult:
    """Run a schedule at once and wait for the end; its next fire time by the clock stays.

    Raises ScheduleTriggerError if the run has not ended after `options.timeout`.
    """
    return open_state(state).run_schedule(agent, schedule, options or RunScheduleOptions())


def build_schedule_prompt(
    state: State, agent: str, schedule: str, work_item: str | Mapping[str, Any] | None = None
) -> str:
    """The prompt that a run of the schedule gets, with an item of a work source as marked data."""
    return open_state(state).prompt_of_schedule(agent, schedule, work_item)
