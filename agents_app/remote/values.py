"""Answers of the API as the values that commands show."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, TypeVar

from agents_app.console import (
    AgentStatus,
    Counters,
    Explanation,
    HistoryEntry,
    LastRun,
    Obstacle,
    PastExplanation,
    ScheduledWork,
    SchedulerStatus,
    ShownSchedule,
    WorkerStatus,
)
from agents_app.triggers.preview import ClockChange, Fire, Preview, clock

T = TypeVar("T")
Row = Mapping[str, Any]
_TIMES = ("_at", "_until")


@dataclass(frozen=True, slots=True)
class ReceivedLine:
    number: int
    at: datetime
    stream: str
    text: str
    open: bool = False


def read_line(row: Row) -> ReceivedLine:
    return _read(ReceivedLine, {**row, "at": _moment(row["at"])}, open=False)


def read_scheduler(row: Row) -> SchedulerStatus:
    return _read(SchedulerStatus, row, running_runs=row["running"])


def read_agent(row: Row) -> AgentStatus:
    last = row["last_run"] and read_run(row["last_run"])
    return _read(AgentStatus, row, last_run=last, queue_size=row["work_queue_size"])


def read_worker(row: Row) -> WorkerStatus:
    return _read(WorkerStatus, row)


def read_run(row: Row) -> LastRun:
    return _read(LastRun, row)


def read_schedule(row: Row) -> ShownSchedule:
    disabled = row["status"] == "active" and not row["enabled"]
    return _read(
        ShownSchedule,
        row,
        state=row["status"],
        shown_state="disabled" if disabled else row["status"],
        text=row["schedule"],
        prompt=row["message"],
        one_shot=row["kind"] == "once",
        last_error=row["last_error"] or "",
    )


def read_preview(row: Row) -> Preview:
    change = row["clock_change"]
    return Preview(
        fires=_fires(row["fires"]),
        note=row["note"],
        change=change
        and ClockChange(
            _instant(change["at"]), change["text"], _fires(change["fires"]), change["note"]
        ),
    )


def read_firing(row: Row, timezone: str) -> HistoryEntry:
    """Of the list of firings, which names the work, but does not describe it."""
    local = clock(_instant(row["due_at"]), timezone)
    return _read(HistoryEntry, row, local=local, outcome_text=row["text"], work=None)


def read_explanation(row: Row, schedule: ShownSchedule) -> Explanation:
    entries = [read_entry(entry, schedule.timezone) for entry in row["firings"]]
    return _read(
        Explanation,
        row,
        state=schedule.state,
        shown_state=schedule.shown_state,
        obstacles=tuple(_read(Obstacle, each) for each in row["obstacles"]),
        next_fire_local=clock(_moment(row["next_fire_at"]), schedule.timezone),
        counters=_read(Counters, row["counters"]),
        firings=tuple(entries),
        retried_work=tuple(_work(work) for work in row["retried_work"]),
    )


def read_past(row: Row, timezone: str) -> PastExplanation:
    sides = {name: row[name] for name in ("firing", "before", "after")}
    entries = {name: side and read_entry(side, timezone) for name, side in sides.items()}
    return _read(PastExplanation, row, local=clock(_moment(row["asked_at"]), timezone), **entries)


def read_entry(row: Row, timezone: str) -> HistoryEntry:
    local = clock(_moment(row["due_at"]), timezone)
    return _read(HistoryEntry, row, local=local, work=row["work"] and _work(row["work"]))


def _work(row: Row) -> ScheduledWork:
    run = {"run": row["run_id"], "run_state": row["run_state"] or ""}
    return _read(ScheduledWork, row, work_item=row["work_item_id"], **run)


def _fires(rows: list[Row]) -> tuple[Fire, ...]:
    return tuple(Fire(_instant(f["at"]), f["local"], f["utc"], f["remark"]) for f in rows)


def _read(kind: type[T], row: Row, **computed: Any) -> T:
    """A value whose fields are those of the answer, unless they are computed."""
    values = dict(computed)
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name not in values:
            value = row[field.name]
            values[field.name] = _moment(value) if field.name.endswith(_TIMES) else value
    return kind(**values)


def _moment(value: Any) -> datetime | None:
    return datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else value


def _instant(value: float) -> datetime:
    return datetime.fromtimestamp(value, UTC)
