"""The schedule buttons and list actions of the admin; each calls a verb of schedules.edit."""

from datetime import datetime
from zoneinfo import ZoneInfo

from agents_app.admin.base import Act, Verb
from agents_app.admin.show import exact
from agents_app.errors import Refused
from agents_app.models import Schedule, WorkItem
from agents_app.schedules import edit
from agents_app.triggers import OnceTrigger, parse_when, zone

S = Schedule.State
CANCELABLE = frozenset({S.ACTIVE, S.PAUSED, S.FAILED})


def of_a_file(schedule: Schedule) -> bool:
    return schedule.source == Schedule.Source.FILE


def _pause(schedule: Schedule, act: Act) -> str:
    until = one_moment(act.until, zone(schedule.timezone), act.now) if act.until else None
    if not edit.pause(schedule, act.by, act.now, act.note, until):
        raise Refused("only an active schedule can be paused")
    return f"{schedule} is paused" + (f" until {exact(until)}" if until else "")


def one_moment(text: str, place: ZoneInfo, now: datetime) -> datetime:
    """People write it as they write a schedule that fires once."""
    trigger = parse_when(text, now, place).trigger
    if not isinstance(trigger, OnceTrigger):
        hint = 'write for example "in 2 hours", "tomorrow at 09:00" or "on 2030-06-01 at 12:00"'
        raise Refused(f'"{text}" is not one moment: {hint}')
    return trigger.at


def _resume(schedule: Schedule, act: Act) -> str:
    if not edit.resume(schedule, act.by, act.now):
        raise Refused("only a paused schedule can be resumed")
    return f"{schedule} goes on with its next fire"


def _resume_now(schedule: Schedule, act: Act) -> str:
    if not edit.resume(schedule, act.by, act.now, at_once=True):
        raise Refused("only a paused schedule can be resumed")
    return f"{schedule} goes on and fires at once"


def _cancel(schedule: Schedule, act: Act) -> str:
    if of_a_file(schedule):
        raise Refused("it stands in the agent's SKILL.md: remove it there, or pause it here")
    called_off = edit.cancel(schedule, act.by, act.now)
    rest = f"; {called_off} of it that waited will not run" if called_off else ""
    return f"{schedule} is canceled{rest}"


def _retry(schedule: Schedule, act: Act) -> str:
    item = edit.retry(schedule, act.by, act.now)
    waits = item.state == WorkItem.State.QUEUED
    return f"{schedule} is tried again as {item}" + (", which waits in the queue" if waits else "")


def _has_come_to_nothing(schedule: Schedule) -> bool:
    undone = schedule.failure_count or schedule.skipped_count or schedule.missed_count
    return schedule.state != S.CANCELED and (schedule.state == S.FAILED or bool(undone))


def _may_be_canceled(schedule: Schedule) -> bool:
    return not of_a_file(schedule) and schedule.state in CANCELABLE


PAUSE = Verb(
    "pause",
    "Pause",
    "pause",
    _pause,
    lambda s: s.state == S.ACTIVE,
    asks="Why (optional)",
    asks_until="Until, e.g. tomorrow at 09:00",
)
RESUME = Verb("resume", "Resume", "resume", _resume, lambda s: s.state == S.PAUSED)
RESUME_NOW = Verb(
    "resume_now", "Resume and fire now", "play_arrow", _resume_now, lambda s: s.state == S.PAUSED
)
RETRY = Verb("retry", "Retry", "replay", _retry, _has_come_to_nothing)
CANCEL = Verb("cancel", "Cancel", "cancel", _cancel, _may_be_canceled, danger=True)
VERBS = (PAUSE, RESUME, RESUME_NOW, RETRY, CANCEL)
