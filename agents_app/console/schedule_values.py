"""What a schedule is, did and will do, as values for commands, pages and the API; pure."""

from dataclasses import dataclass
from datetime import datetime

# The codes of obstacles that the end of a run removes.
ENDED_BY_A_RUN = frozenset({"already_running", "at_capacity", "project_at_capacity"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSchedule:
    """A schedule without its row; `id` is None before it is saved."""

    id: int | None
    agent: str
    name: str
    state: str
    # `disabled` for an active schedule of a disabled agent, otherwise the state.
    shown_state: str
    # Why the agent is disabled; empty if it is enabled.
    disabled_because: str
    enabled: bool
    source: str
    text: str
    expression: str
    one_shot: bool
    timezone: str
    prompt: str
    overlap: str
    catch_up: str
    catch_up_window_seconds: float
    jitter_percent: float
    jitter_seconds: float
    gap: str
    overlap_hour: str
    anchor: str
    pause_after_failures: int
    pause_note: str
    pause_until: datetime | None
    run_count: int
    fire_count: int
    skipped_count: int
    missed_count: int
    late_count: int
    failure_count: int
    last_error: str
    next_fire_at: datetime | None
    last_fire_at: datetime | None
    last_completed_at: datetime | None
    created_at: datetime | None
    updated_at: datetime | None

    def __str__(self) -> str:
        return f"{self.agent}/{self.name}"


# --- its history ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScheduledWork:
    """A work item of a schedule, and its last run."""

    work_item: int
    asked_at: datetime
    asked_by: str
    state: str
    reason: str
    # The position in its agent's queue, from 1.
    position: int | None
    run: int | None
    run_state: str
    started_at: datetime | None
    finished_at: datetime | None
    exit_code: int | None
    error: str
    text: str


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A firing: `outcome_text` explains its outcome, `work_text` the state of its work."""

    due_at: datetime
    local: str
    outcome: str
    reason: str
    late_seconds: float
    outcome_text: str
    work_text: str
    work: ScheduledWork | None


# --- why it did not run ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A condition; `code` is for programs, `text` for people."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Counters:
    """Totals of the schedule; `failures` counts the failures since the last success."""

    fired: int
    skipped: int
    missed: int
    late: int
    failures: int


@dataclass(frozen=True, slots=True)
class Explanation:
    id: int
    agent: str
    name: str
    state: str
    # `disabled` for an active schedule of a disabled agent, otherwise the state.
    shown_state: str
    timezone: str
    # The state in one sentence.
    text: str
    obstacles: tuple[Obstacle, ...]
    next_fire_at: datetime | None
    next_fire_local: str
    counters: Counters
    firings: tuple[HistoryEntry, ...]
    # The work items that retries of the schedule created.
    retried_work: tuple[ScheduledWork, ...]


@dataclass(frozen=True, slots=True)
class PastExplanation:
    """`firing` is the firing recorded near that time; `before` and `after` are its neighbours."""

    asked_at: datetime
    local: str
    text: str
    firing: HistoryEntry | None
    before: HistoryEntry | None
    after: HistoryEntry | None
    # When the schedule was due by its present text, recorded or not.
    due_at: datetime | None
