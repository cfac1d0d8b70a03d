"""Schedules as values that commands and the API show, and their next fires."""

from dataclasses import fields
from datetime import datetime

from agents_app.console import ShownSchedule
from agents_app.models import Schedule
from agents_app.runs import find_blocks
from agents_app.schedules.plan import fire_after_pause
from agents_app.triggers import read_untimed
from agents_app.triggers.preview import Preview, preview_fires

S = Schedule.State
_COMPUTED = {"id", "agent", "state", "disabled_because", "enabled", "source"}
# The values before a schedule is saved, of columns that get theirs then.
_UNSAVED = {"created_at": None, "updated_at": None, "last_error": ""}
_SAME = [field.name for field in fields(ShownSchedule) if field.name not in _COMPUTED]


def shown_schedule(schedule: Schedule) -> ShownSchedule:
    """Select the agent with the schedule, or it costs a query."""
    values = {name: getattr(schedule, name) for name in _SAME}
    if schedule._state.adding:
        values |= _UNSAVED
    return ShownSchedule(
        id=schedule.pk,
        agent=schedule.agent.name,
        state=str(schedule.state),
        source=str(schedule.source),
        enabled=schedule.agent.enabled,
        disabled_because=disabled_because(schedule),
        **values,
    )


def disabled_because(schedule: Schedule) -> str:
    """Why the agent of the schedule is disabled; empty if it is enabled."""
    if schedule.agent.enabled:
        return ""
    return next((block.text for block in find_blocks(schedule.agent)), "")


def preview_of(schedule: Schedule, now: datetime, count: int) -> Preview:
    """The next fires; of a paused schedule as if it were resumed now."""
    if untimed := read_untimed(schedule.expression):
        return Preview(note=untimed.refusal)
    armed = schedule.next_fire_at
    if schedule.state == S.PAUSED:
        armed = fire_after_pause(schedule, now) or (now if schedule.one_shot else None)
    if armed is None or schedule.state not in {S.ACTIVE, S.PAUSED}:
        return Preview(note=f"The schedule is {schedule.state}: no more fires.")
    rules = {name: getattr(schedule, name) for name in ("gap", "overlap_hour", "anchor")}
    when = schedule.expression, schedule.timezone
    return preview_fires(*when, now, armed=armed, count=count, **rules)
