"""A schedule as JSON, as rows of a table, and as lines."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from agents_app.clock import iso_local
from agents_app.console.schedule_values import HistoryEntry, ShownSchedule
from agents_app.console.tables import shortened
from agents_app.text import relative
from agents_app.triggers import LATE, format_lateness, zone
from agents_app.triggers.preview import Fire, Preview, clock

COLUMNS = ("#", "schedule", "state", "when", "next fire", "note")
FIRE_COLUMNS = ("local", "utc", "from now", "remark")
HISTORY_COLUMNS = ("due", "outcome", "late", "reason", "result")
FIRING_COLUMNS = ("schedule", *HISTORY_COLUMNS)
_SAME = (
    *("name", "state", "source", "text", "expression", "one_shot", "timezone", "prompt"),
    *("overlap", "catch_up", "catch_up_window_seconds", "jitter_percent", "jitter_seconds"),
    *("gap", "overlap_hour", "anchor", "pause_after_failures", "pause_note"),
    *("run_count", "fire_count", "skipped_count", "missed_count", "late_count", "failure_count"),
    "last_error",
)
_TIMES = ("next_fire", "pause_until", "last_fire", "last_completed", "created", "updated")


def schedule_as_json(schedule: ShownSchedule) -> dict[str, Any]:
    """Each time in UTC and in the schedule's time zone."""
    value: dict[str, Any] = {"id": schedule.id, "agent": schedule.agent}
    value |= {name: getattr(schedule, name) for name in _SAME}
    # The names of the API; `text`, `prompt`, `one_shot` and `state` are those of version 0.1.0.
    value |= {
        "schedule": schedule.text or schedule.expression,
        "message": schedule.prompt,
        "kind": "once" if schedule.one_shot else "recurring",
        "status": schedule.state,
        "enabled": schedule.enabled,
    }
    value["shown_state"] = schedule.shown_state
    for name in _TIMES:
        column = name if name == "pause_until" else f"{name}_at"
        moment = getattr(schedule, column)
        value |= {column: moment, f"{name}_local": iso_local(moment, zone(schedule.timezone))}
    return value


def fires_described(seen: Preview, schedule: ShownSchedule) -> dict[str, Any]:
    change = seen.change
    return {
        "fires": [_fire(fire, schedule) for fire in seen.fires],
        "note": seen.note,
        "clock_change": None
        if change is None
        else {
            "at": change.at,
            "text": change.text,
            "note": change.note,
            "fires": [_fire(fire, schedule) for fire in change.fires],
        },
    }


def _fire(fire: Fire, schedule: ShownSchedule) -> dict[str, Any]:
    local = iso_local(fire.at, zone(schedule.timezone))
    return {"at": fire.at, "local": local, "remark": fire.remark}


def entry_described(entry: HistoryEntry, schedule: ShownSchedule) -> dict[str, Any]:
    local = iso_local(entry.due_at, zone(schedule.timezone)) or ""
    value = asdict(replace(entry, local=local))
    # The keys of version 0.1.0, which scripts read.
    texts = {"because": value.pop("outcome_text"), "became": value.pop("work_text")}
    return value | texts


# --- for people -----------------------------------------------------------------------------


def schedule_row(schedule: ShownSchedule, now: datetime) -> tuple[object, ...]:
    at = schedule.next_fire_at if schedule.shown_state == "active" else None
    return (
        schedule.id,
        str(schedule),
        schedule.shown_state,
        shortened(schedule.text or schedule.expression, 40),
        with_distance(at, schedule, now) if at else "-",
        shortened(note_of(schedule), 40),
    )


def note_of(schedule: ShownSchedule) -> str:
    """Until when and why the schedule is paused, or why its agent is disabled."""
    if schedule.shown_state == "disabled":
        return schedule.disabled_because
    until = (
        f"until {clock(schedule.pause_until, schedule.timezone)}" if schedule.pause_until else ""
    )
    return ", ".join(filter(None, (until, schedule.pause_note)))


def fire_rows(fires: Iterable[Fire], now: datetime) -> list[tuple[object, ...]]:
    return [(fire.local, fire.utc, relative(fire.at, now), fire.remark) for fire in fires]


def entry_row(entry: HistoryEntry) -> tuple[object, ...]:
    late = format_lateness(entry.late_seconds) if entry.late_seconds > LATE.total_seconds() else ""
    result = shortened(entry.work_text, 80)
    return entry.local, entry.outcome, late, entry.outcome_text, result


def with_distance(moment: datetime, schedule: ShownSchedule, now: datetime) -> str:
    return f"{clock(moment, schedule.timezone)} ({relative(moment, now)})"


def details(schedule: ShownSchedule, now: datetime) -> Iterator[tuple[str, str]]:
    """Settings and history of the schedule, a label and a value each."""
    yield "agent", schedule.agent
    yield "state", f"{schedule.shown_state} {note_of(schedule)}".strip()
    yield "when", f"{schedule.text or schedule.expression} ({schedule.expression})"
    yield "time zone", schedule.timezone
    yield "defined in", "SKILL.md" if schedule.source == "file" else "the database"
    yield "policies", ", ".join(policies(schedule))
    fires = ("next_fire_at",) if schedule.shown_state != "disabled" else ()
    for name in (*fires, "last_fire_at", "last_completed_at", "created_at"):
        if moment := getattr(schedule, name):
            label = name.removesuffix("_at").replace("_", " ")
            yield label, with_distance(moment, schedule, now)
    yield "counters", counters(schedule)
    if schedule.last_error:
        yield "last error", schedule.last_error
    if schedule.prompt:
        yield "prompt", schedule.prompt


def policies(schedule: ShownSchedule) -> Iterator[str]:
    yield f"overlap {schedule.overlap}"
    yield f"catch up {schedule.catch_up} within {format_lateness(schedule.catch_up_window_seconds)}"
    yield f"gap {schedule.gap}"
    yield f"overlap hour {schedule.overlap_hour}"
    if schedule.jitter_percent:
        yield f"jitter {schedule.jitter_percent:g}%"
    if schedule.jitter_seconds:
        yield f"jitter {schedule.jitter_seconds:g} s"
    if schedule.anchor:
        yield f"anchor {schedule.anchor}"
    if schedule.pause_after_failures:
        yield f"paused after {schedule.pause_after_failures} failures"


def counters(schedule: ShownSchedule) -> str:
    return (
        f"{schedule.run_count} runs, {schedule.fire_count} fired, "
        f"{schedule.skipped_count} skipped, {schedule.missed_count} missed, "
        f"{schedule.late_count} late, "
        f"{schedule.failure_count} failures in a row"
    )
