"""Decides from plain values whether a schedule fires now, and why not."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from agents_app.errors import IntervalParseError, TriggerParseError
from agents_app.triggers.cron import CronTrigger, parse_cron
from agents_app.triggers.fires import last_fire_between, next_fire
from agents_app.triggers.interval import calculate_next_trigger, is_schedule_due

SkipReason = Literal["disabled", "unsupported_type", "already_running", "at_capacity", "not_due"]

_UTC = ZoneInfo("UTC")
_MOMENT = timedelta(microseconds=1)
# A new cron schedule still fires for a recent match: within a sixtieth of the time between two
# matches, at most _MAX_WINDOW; within half of it if matches are _CLOSE or less apart.
_MAX_WINDOW = timedelta(minutes=5)
_CLOSE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class CheckedSchedule:
    """A schedule and its state; `last_run_at` is its last completion."""

    name: str
    type: str
    interval: str | None = None
    cron: str | None = None
    enabled: bool = True
    status: str = "idle"
    last_run_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ScheduleCheck:
    should_trigger: bool
    skip_reason: SkipReason | None = None


def check_schedule(
    schedule: CheckedSchedule,
    running: Collection[str],
    max_concurrent: int,
    now: datetime,
    zone: ZoneInfo = _UTC,
) -> ScheduleCheck:
    """`running` are the names of the agent's schedules that are running now."""
    reason = _blocked(schedule, running, max_concurrent) or _not_due(schedule, now, zone)
    return ScheduleCheck(reason is None, reason)


def _blocked(
    schedule: CheckedSchedule, running: Collection[str], max_concurrent: int
) -> SkipReason | None:
    if not schedule.enabled:
        return "disabled"
    if schedule.type not in ("interval", "cron"):
        return "unsupported_type"
    if schedule.status == "disabled":
        return "disabled"
    if schedule.name in running:
        return "already_running"
    return "at_capacity" if len(running) >= max_concurrent else None


def _not_due(schedule: CheckedSchedule, now: datetime, zone: ZoneInfo) -> SkipReason | None:
    text = schedule.interval if schedule.type == "interval" else schedule.cron
    if not text:
        return "unsupported_type"
    due = _interval_due_at if schedule.type == "interval" else _cron_due_at
    try:
        due_at = due(text, schedule.last_run_at, now, zone)
    except (IntervalParseError, TriggerParseError):
        return "unsupported_type"
    return None if due_at and is_schedule_due(due_at, now) else "not_due"


def _interval_due_at(
    interval: str, last: datetime | None, now: datetime, _zone: ZoneInfo
) -> datetime:
    return calculate_next_trigger(last, interval, now=now, rand=0)


def _cron_due_at(
    cron: str, last: datetime | None, now: datetime, zone: ZoneInfo
) -> datetime | None:
    trigger = parse_cron(cron)
    return next_fire(trigger, last, zone) if last else _recent_match(trigger, now, zone)


def _recent_match(trigger: CronTrigger, now: datetime, zone: ZoneInfo) -> datetime | None:
    earliest = (now - _MAX_WINDOW).astimezone(UTC)
    match = last_fire_between(trigger, earliest - _MOMENT, now - _MOMENT, zone)
    following = next_fire(trigger, now, zone)
    if match is None or following is None:
        return None
    apart = following - match
    return match if now - match <= apart / (2 if apart <= _CLOSE else 60) else None
