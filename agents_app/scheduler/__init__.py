"""The scheduler for Python programs: Drover's engine in the process of the caller, without Redis.

Belongs here: what a program imports to start, watch and stop the engine, and its typed values.
Does not belong here: decisions about schedules and runs; they are those of beat and the workers.
"""

from agents_app.errors import (
    IntervalParseError,
    SchedulerError,
    SchedulerShutdownError,
    ScheduleTriggerError,
)
from agents_app.scheduler.embedded import EmbeddedScheduler as Scheduler
from agents_app.scheduler.functions import (
    build_schedule_prompt,
    check_schedule,
    get_agent_schedule_states,
    get_schedule_state,
    run_schedule,
    update_schedule_state,
)
from agents_app.scheduler.values import (
    SKIP_REASONS,
    AgentScheduleInfo,
    RunScheduleOptions,
    ScheduleCheckResult,
    SchedulerLogger,
    SchedulerOptions,
    SchedulerState,
    SchedulerStatus,
    SchedulerTriggerCallback,
    ScheduleRunnerLogger,
    ScheduleRunResult,
    ScheduleSkipReason,
    ScheduleState,
    ScheduleStateLogger,
    ScheduleStateOptions,
    ScheduleStateUpdates,
    ScheduleStatus,
    StopOptions,
    TriggerInfo,
    TriggerMetadata,
)
from agents_app.triggers import calculate_next_trigger, is_schedule_due, parse_interval

__all__ = [
    "SKIP_REASONS",
    "AgentScheduleInfo",
    "IntervalParseError",
    "RunScheduleOptions",
    "ScheduleCheckResult",
    "ScheduleRunResult",
    "ScheduleRunnerLogger",
    "ScheduleSkipReason",
    "ScheduleState",
    "ScheduleStateLogger",
    "ScheduleStateOptions",
    "ScheduleStateUpdates",
    "ScheduleStatus",
    "ScheduleTriggerError",
    "Scheduler",
    "SchedulerError",
    "SchedulerLogger",
    "SchedulerOptions",
    "SchedulerShutdownError",
    "SchedulerState",
    "SchedulerStatus",
    "SchedulerTriggerCallback",
    "StopOptions",
    "TriggerInfo",
    "TriggerMetadata",
    "build_schedule_prompt",
    "calculate_next_trigger",
    "check_schedule",
    "get_agent_schedule_states",
    "get_schedule_state",
    "is_schedule_due",
    "parse_interval",
    "run_schedule",
    "update_schedule_state",
]
