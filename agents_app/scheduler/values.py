"""The options and results of the scheduler for Python programs; no Django."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol, TypedDict, get_args

from agents_app.errors import SchedulerError

SchedulerStatus = Literal["stopped", "running", "stopping"]
ScheduleStatus = Literal["idle", "running", "disabled"]
# The first five are those of herdctl; the others are further reasons of Drover's ledger.
ScheduleSkipReason = Literal[
    "unsupported_type",
    "disabled",
    "already_running",
    "at_capacity",
    "not_due",
    "paused",
    "budget",
    "tenant_disabled",
    "missed",
    "stopping",
    "no_work",
    "source_failed",
]
SKIP_REASONS: tuple[ScheduleSkipReason, ...] = get_args(ScheduleSkipReason)
State = str | Path | None
LONGEST_SECONDS = 86_400.0


class SchedulerLogger(Protocol):
    """A `logging.Logger`, or any object with these methods."""

    def debug(self, message: str, /) -> object: ...

    def info(self, message: str, /) -> object: ...

    def warning(self, message: str, /) -> object: ...

    def error(self, message: str, /) -> object: ...


# One kind of logger for the scheduler, for states of schedules and for single runs.
ScheduleStateLogger = ScheduleRunnerLogger = SchedulerLogger


def default_logger() -> SchedulerLogger:
    return logging.getLogger("drover.scheduler")


# --- triggers -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TriggerMetadata:
    """Why a run exists, as its row in the database has it."""

    trigger: str
    requested_by: str
    trace_id: str
    firing_id: int | None = None
    due_at: datetime | None = None
    parent_run_id: int | None = None


@dataclass(frozen=True, slots=True)
class TriggerInfo:
    """A started run, for `on_trigger`; `schedule` is empty if no schedule has started it."""

    agent: str
    schedule: str
    run_id: int
    work_item_id: int
    # The prompt of the schedule or request, and what triggered the run as untrusted data.
    prompt: str
    context: str
    attempt: int
    rerun: int
    timeout_seconds: float
    metadata: TriggerMetadata


# Its return value is ignored; an awaitable is awaited. An exception fails the run.
SchedulerTriggerCallback = Callable[[TriggerInfo], object]


# --- options --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerOptions:
    """`state` is a directory or the URL of a database; None: as the environment or Django says."""

    state: State = None
    check_interval: float = 1.0
    logger: SchedulerLogger | None = None
    on_trigger: SchedulerTriggerCallback | None = None

    def __post_init__(self) -> None:
        check_state(self.state)
        check_seconds("check_interval", self.check_interval)
        check_callback(self.on_trigger)
        check_logger(self.logger)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopOptions:
    wait_for_jobs: bool = True
    timeout: float = 30.0

    def __post_init__(self) -> None:
        if not isinstance(self.wait_for_jobs, bool):
            raise SchedulerError(
                f"wait_for_jobs: expected True or False, not {self.wait_for_jobs!r}"
            )
        check_seconds("timeout", self.timeout, zero=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScheduleOptions:
    """`timeout` is the longest wait for the end of the run; None: its own time limit ends it."""

    timeout: float | None = None
    logger: SchedulerLogger | None = None
    on_trigger: SchedulerTriggerCallback | None = None

    def __post_init__(self) -> None:
        if self.timeout is not None:
            check_seconds("timeout", self.timeout)
        check_callback(self.on_trigger)
        check_logger(self.logger)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleStateOptions:
    """`logger` gets a line for each state that is read (debug) or changed (info)."""

    logger: SchedulerLogger | None = None

    def __post_init__(self) -> None:
        check_logger(self.logger)


def check_state(state: object) -> None:
    if state is not None and not isinstance(state, str | Path):
        raise SchedulerError(
            f"state: expected a directory or the URL of a database, not {type(state).__name__}"
        )
    if state is not None and not str(state).strip():
        raise SchedulerError("state: is empty; give a directory or the URL of a database")


def check_seconds(name: str, value: object, *, zero: bool = False) -> None:
    usable = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value <= LONGEST_SECONDS
        and (zero or value > 0)
    )
    if not usable:
        least = "0" if zero else "more than 0"
        raise SchedulerError(
            f"{name}: expected seconds, {least} to {LONGEST_SECONDS:g}, not {value!r}"
        )


def check_callback(callback: object) -> None:
    if callback is not None and not callable(callback):
        raise SchedulerError(
            f"on_trigger: expected a function with one argument, not {type(callback).__name__}"
        )


def check_logger(logger: object) -> None:
    if logger is None:
        return
    for method in ("debug", "info", "warning", "error"):
        if not callable(getattr(logger, method, None)):
            raise SchedulerError(f"logger: {type(logger).__name__} has no method {method}()")


# --- results --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SchedulerState:
    """The counters are those of this scheduler since its start."""

    status: SchedulerStatus
    started_at: datetime | None
    check_count: int
    trigger_count: int
    last_check_at: datetime | None


@dataclass(frozen=True, slots=True)
class AgentScheduleInfo:
    """A schedule of an agent as the engine knows it."""

    agent: str
    schedule: str
    expression: str
    timezone: str
    prompt: str
    next_run_at: datetime | None


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """`last_run_at` is the end of the last run; `last_error` is None after a success."""

    status: ScheduleStatus
    last_run_at: datetime | None
    next_run_at: datetime | None
    last_error: str | None


class ScheduleStateUpdates(TypedDict, total=False):
    """The values to change; `running` cannot be set, because it follows from runs."""

    status: Literal["idle", "disabled"]
    last_run_at: datetime | None
    next_run_at: datetime | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class ScheduleCheckResult:
    """What the engine would do with a schedule now."""

    agent: str
    schedule: str
    should_trigger: bool
    skip_reason: ScheduleSkipReason | None = None


@dataclass(frozen=True, slots=True)
class ScheduleRunResult:
    """The end of a run, or the reason for which a firing started none."""

    agent: str
    schedule: str
    success: bool
    skip_reason: ScheduleSkipReason | None = None
    run_id: int | None = None
    state: str = ""
    exit_code: int | None = None
    error: str = ""
    return_value: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    # The item of the work source as data, if the schedule has a work source.
    work_item: dict[str, Any] | None = None

    @property
    def processed_work_item(self) -> bool:
        return self.work_item is not None

    @property
    def duration_seconds(self) -> float | None:
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()
