"""Buttons and list actions of schedules; each calls a function of schedules.edit."""

from datetime import datetime
from zoneinfo import ZoneInfo

from django.utils.html import format_html

from agents_app.admin.base import Act, Done, Verb
from agents_app.admin.formatting import exact, link_to
from agents_app.errors import Refused
from agents_app.models import Schedule
from agents_app.schedules import edit
from agents_app.triggers import OnceTrigger, parse_when, zone

S = Schedule.State
CANCELABLE = frozenset({S.ACTIVE, S.PAUSED, S.FAILED})


def _pause(schedule: Schedule, act: Act) -> str:
    until = parse_moment(act.until, zone(schedule.timezone), act.now) if act.until else None
    if not edit.pause(schedule, act.by, act.now, act.note, until):
        raise Refused("only an active schedule can be paused")
    return f"{schedule} paused" + (f" until {exact(until)}" if until else "")


def parse_moment(text: str, place: ZoneInfo, now: datetime) -> datetime:
    """A text in the form of a one-time schedule, as a time."""
    trigger = parse_when(text, now, place).trigger
    if not isinstance(trigger, OnceTrigger):
        hint = 'enter for example "in 2 hours", "tomorrow at 09:00" or "on 2030-06-01 at 12:00"'
        raise Refused(f'"{text}" is not a single time: {hint}')
    return trigger.at


def _resume(schedule: Schedule, act: Act) -> str:
    if not edit.resume(schedule, act.by, act.now):
        raise Refused("only a paused schedule can be resumed")
    return f"{schedule} resumed: fires at its next time"


def _resume_now(schedule: Schedule, act: Act) -> str:
    if not edit.resume(schedule, act.by, act.now, at_once=True):
        raise Refused("only a paused schedule can be resumed")
    return f"{schedule} resumed: fires now"


def _cancel(schedule: Schedule, act: Act) -> str:
    dropped = edit.cancel(schedule, act.by, act.now)
    rest = f"; {dropped} queued work item{'' if dropped == 1 else 's'} dropped" if dropped else ""
    return f"{schedule} canceled{rest}"


def _retry(schedule: Schedule, act: Act) -> Done:
    item = edit.retry(schedule, act.by, act.now)
    made = item.runs.order_by("-pk").first() or item
    return Done(format_html("{}: retry queued: {}", schedule, link_to(made)), made)


def _has_failures(schedule: Schedule) -> bool:
    failures = schedule.failure_count or schedule.skipped_count or schedule.missed_count
    return schedule.state != S.CANCELED and (schedule.state == S.FAILED or bool(failures))


def _is_cancelable(schedule: Schedule) -> bool:
    return not edit.is_defined_in_file(schedule) and schedule.state in CANCELABLE


PAUSE = Verb(
    "pause",
    "Pause",
    "pause",
    _pause,
    lambda s: s.state == S.ACTIVE,
    asks="Reason (optional)",
    asks_until="Until, e.g. tomorrow at 09:00",
)
RESUME = Verb("resume", "Resume", "resume", _resume, lambda s: s.state == S.PAUSED)
RESUME_NOW = Verb(
    "resume_now", "Resume and fire now", "play_arrow", _resume_now, lambda s: s.state == S.PAUSED
)
RETRY = Verb("retry", "Retry", "replay", _retry, _has_failures)
CANCEL = Verb("cancel", "Cancel", "cancel", _cancel, _is_cancelable, danger=True)
VERBS = (PAUSE, RESUME, RESUME_NOW, RETRY, CANCEL)
