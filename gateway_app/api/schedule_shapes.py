"""Schedules as JSON, in requests and responses; the names are those of Arbiter."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from agents_app.schedules import disabled_because
from agents_app.triggers.preview import ClockChange, Fire, Preview
from gateway_app.access import sentence_error
from gateway_app.api.fields import (
    Epoch,
    Note,
    Payload,
    Seconds,
    Shape,
    Text,
    Whole,
    epoch,
    epoch_or_none,
)

STATUSES = ("active", "paused", "canceled", "completed", "failed")
_REQUIRED = ("schedule", "message")
REQUIRED = "required fields: schedule (NL phrase), message"
DEFAULT_AGENT = "The agent `index` if there is one, or the only agent; otherwise required."
WHEN = ["every monday at 09:00", "in 30 minutes", "0 9 * * 1-5", "@daily", "15m"]
Status = Literal["active", "paused", "canceled", "completed", "failed"]
Phrase = Annotated[Text, Field(min_length=1, max_length=200, examples=WHEN)]
Span = Annotated[float, Field(ge=0, le=366 * 86_400, allow_inf_nan=False)]


def _known_status(value: Any) -> Any:
    if value is not None and value not in STATUSES:
        raise sentence_error(f"status must be one of: {', '.join(STATUSES)}")
    return value


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


class Policies(Payload):
    """A field that is missing or null has its default in a new schedule; else it is unchanged."""

    timezone: Annotated[Text, Field(max_length=64)] | None = None
    overlap: Literal["skip", "queue_one", "queue", "cancel_other"] | None = None
    catch_up: Literal["skip", "last", "all"] | None = None
    catch_up_window_seconds: Span | None = None
    jitter_percent: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] | None = None
    jitter_seconds: Span | None = None
    gap: Literal["shift", "next_valid", "skip"] | None = None
    overlap_hour: Literal["first", "second", "both"] | None = None
    anchor: Literal["completion", "start", ""] | None = None
    pause_after_failures: Annotated[Whole, Field(ge=0, le=1_000_000)] | None = None

    def given_policies(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in Policies.model_fields}
        return {name: value for name, value in values.items() if value is not None}


class NewSchedule(Policies):
    schedule: Phrase
    message: Annotated[Text, Field(min_length=1, description="The prompt of the runs.")]
    agent: Text | None = Field(default=None, description=DEFAULT_AGENT)
    name: Annotated[Text, Field(max_length=100)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _require_schedule_and_message(cls, value: Any) -> Any:
        if isinstance(value, dict) and any(_is_blank(value.get(n)) for n in _REQUIRED):
            raise sentence_error(REQUIRED)
        return value


class ScheduleChanges(Policies):
    schedule: Phrase | None = None
    message: Annotated[Text, Field(min_length=1)] | None = None
    agent: Text | None = None
    name: Annotated[Text, Field(min_length=1, max_length=100)] | None = None
    status: Annotated[Status, BeforeValidator(_known_status)] | None = None
    pause_note: Note | None = Field(default=None, description="With status=paused.")
    pause_until: Seconds | None = Field(default=None, description="With status=paused.")
    at_once: bool = Field(default=False, description="With status=active: also fires now.")


class ScheduleShape(Shape):
    id: int
    agent: str
    name: str
    schedule: str = Field(description="As entered.")
    expression: str = Field(description="The parsed schedule, independent of the current time.")
    message: str
    kind: Literal["once", "recurring"]
    status: Status
    enabled: bool = Field(
        description="False if the agent is disabled or removed: the schedule does not fire."
    )
    disabled_because: str = Field(description="Why the agent is disabled; empty if it is enabled.")
    next_fire_at: Epoch | None
    last_fire_at: Epoch | None
    last_run_at: Epoch | None
    last_completed_at: Epoch | None
    last_run_id: int | None
    run_count: int = Field(description="Runs, with retries and reruns, without skipped firings.")
    fire_count: int = Field(description="Due times that were not missed, also skipped ones.")
    skipped_count: int
    missed_count: int
    late_count: int
    failure_count: int = Field(description="In a row.")
    last_error: str | None = Field(description="Of the last failed work; null after a success.")
    timezone: str
    overlap: Literal["skip", "queue_one", "queue", "cancel_other"]
    catch_up: Literal["skip", "last", "all"]
    catch_up_window_seconds: float
    jitter_percent: float
    jitter_seconds: float
    gap: Literal["shift", "next_valid", "skip"]
    overlap_hour: Literal["first", "second", "both"]
    anchor: Literal["completion", "start", ""]
    pause_after_failures: int
    pause_note: str
    pause_until: Epoch | None
    source: Literal["file", "person"]
    created_at: Epoch
    updated_at: Epoch = Field(description="Moves with every change, also by a firing or a run.")


_SAME = (
    *("id", "name", "expression", "run_count", "fire_count", "skipped_count", "missed_count"),
    *("late_count", "failure_count"),
    *("timezone", "overlap", "catch_up", "catch_up_window_seconds", "jitter_percent"),
    *("jitter_seconds", "gap", "overlap_hour", "anchor", "pause_after_failures", "pause_note"),
    "source",
)


def schedule_shape(schedule: Any) -> ScheduleShape:
    """The schedule must come from `schedules_of`, which annotates it."""
    values = {name: getattr(schedule, name) for name in _SAME}
    moments = ("next_fire_at", "last_fire_at", "last_run_at", "last_completed_at", "pause_until")
    values |= {name: epoch_or_none(getattr(schedule, name)) for name in moments}
    return ScheduleShape(
        **values,
        agent=schedule.agent.name,
        schedule=schedule.text or schedule.expression,
        message=schedule.prompt,
        kind="once" if schedule.one_shot else "recurring",
        status=schedule.state,
        enabled=schedule.agent.enabled,
        disabled_because=disabled_because(schedule),
        last_run_id=schedule.last_run_id,
        last_error=schedule.last_error or None,
        created_at=epoch(schedule.created_at),
        updated_at=epoch(schedule.updated_at),
    )


# --- fires ----------------------------------------------------------------------------------


class FireShape(Shape):
    at: Epoch
    local: str
    utc: str
    remark: str


class ClockChangeShape(Shape):
    at: Epoch
    text: str
    note: str
    fires: list[FireShape]


class FiresShape(Shape):
    note: str = Field(description="Explains the fires, or why there are none.")
    fires: list[FireShape]
    clock_change: ClockChangeShape | None = Field(
        description="How the next clock change of the time zone affects the firings."
    )


def fires_shape(seen: Preview) -> FiresShape:
    change = _change(seen.change) if seen.change else None
    return FiresShape(note=seen.note, fires=_fires(seen.fires), clock_change=change)


def _change(change: ClockChange) -> ClockChangeShape:
    return ClockChangeShape(
        at=epoch(change.at), text=change.text, note=change.note, fires=_fires(change.fires)
    )


def _fires(fires: Iterable[Fire]) -> list[FireShape]:
    return [
        FireShape(at=epoch(fire.at), local=fire.local, utc=fire.utc, remark=fire.remark)
        for fire in fires
    ]
