"""Fire times of a schedule by its text and policies; reads and writes no rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import cast
from zoneinfo import ZoneInfo

from agents_app.models import Firing, Schedule
from agents_app.triggers import (
    Gap,
    IntervalTrigger,
    OnceTrigger,
    OverlapHour,
    Trigger,
    last_fire_between,
    next_fire,
    parse_trigger,
    parse_when,
    zone,
)

# Instants are enumerated up to this number: a year of minutes is half a million.
MOST_INSTANTS = 1000
MOST_CAUGHT_UP = 100
# With `catch_up: skip`, an instant is on time up to this delay of a busy or restarting beat.
PUNCTUAL = timedelta(seconds=60)
MOMENT = timedelta(microseconds=1)
# The schedules of a disabled tenant are postponed by this time.
DISABLED_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Plan:
    """The firings of a due schedule, and its next fire time."""

    fire: tuple[datetime, ...] = ()
    skipped: tuple[datetime, ...] = ()
    reason: str = ""
    missed_count: int = 0
    next_fire_at: datetime | None = None


# --- text to fires --------------------------------------------------------------------------


def parse_schedule_text(schedule: Schedule, now: datetime, *, allow_past: bool = False) -> None:
    """Set the schedule's trigger from its text; a time zone in the text becomes the schedule's."""
    local = zone(schedule.timezone)
    when = parse_when(schedule.text, now, local, *_policies(schedule), allow_past=allow_past)
    schedule.expression = when.trigger.expression
    schedule.timezone = when.zone.key
    schedule.one_shot = isinstance(when.trigger, OnceTrigger)


def set_next_fire(schedule: Schedule, now: datetime) -> None:
    """Set the next fire time of a new or edited schedule.

    `15m` fires immediately, `every 15 minutes` after 15 minutes.
    """
    trigger = parse_trigger(schedule.expression)
    schedule.interval_seconds = None
    if isinstance(trigger, OnceTrigger):
        schedule.next_fire_at = trigger.at
    elif isinstance(trigger, IntervalTrigger) and _anchor(schedule, trigger) == "completion":
        schedule.interval_seconds = trigger.every.total_seconds()
        last = schedule.last_completed_at
        schedule.next_fire_at = now if last is None else max(now, last + trigger.every)
    else:
        schedule.next_fire_at = fire_after(schedule, now)


def fire_after(schedule: Schedule, after: datetime) -> datetime | None:
    """The first fire time after a moment, by the schedule's trigger, zone and policies."""
    trigger = parse_trigger(schedule.expression)
    return next_fire(trigger, after, zone(schedule.timezone), *_policies(schedule))


def fire_after_pause(schedule: Schedule, now: datetime) -> datetime | None:
    """The first fire time after a pause: `every 2 hours` keeps its times, `2h` waits two hours."""
    armed = schedule.next_fire_at
    if armed is None or (armed <= now and schedule.interval_seconds is not None):
        return fire_after(schedule, now)
    return _instants(schedule, now)[1]


def _anchor(schedule: Schedule, trigger: IntervalTrigger) -> str:
    return schedule.anchor or trigger.anchor


def _policies(schedule: Schedule) -> tuple[Gap, OverlapHour]:
    return cast("Gap", schedule.gap), cast("OverlapHour", schedule.overlap_hour)


# --- due instants ---------------------------------------------------------------------------


def plan_firings(schedule: Schedule, now: datetime, *, busy: bool, disabled: bool = False) -> Plan:
    """Divide the instants since `next_fire_at` by the schedule's catch-up policy."""
    assert schedule.next_fire_at is not None
    if disabled:
        later = fire_after_pause(schedule, now + DISABLED_FOR)
        armed = (schedule.next_fire_at,)
        return Plan(skipped=armed, reason=Firing.Reason.TENANT_DISABLED, next_fire_at=later)
    if schedule.interval_seconds is not None:
        # Counted from the end of a run: during a run no instant is due.
        due = () if busy else (schedule.next_fire_at,)
        every = timedelta(seconds=schedule.interval_seconds)
        return Plan(due, next_fire_at=now + every)
    instants, upcoming = _instants(schedule, now)
    fire = _to_fire(schedule, instants, now)
    caught_up = set(fire)
    missed = [instant for instant in instants if instant not in caught_up]
    shown = tuple(missed[-MOST_CAUGHT_UP:])
    return Plan(fire, shown, Firing.Reason.MISSED, len(missed), upcoming)


def _instants(schedule: Schedule, now: datetime) -> tuple[list[datetime], datetime | None]:
    """Every instant from `next_fire_at` until now, and the first instant after now."""
    instants: list[datetime] = []
    upcoming = schedule.next_fire_at
    while upcoming is not None and upcoming <= now:
        if len(instants) == MOST_INSTANTS:
            instants += _latest(schedule, upcoming, now)
            return instants, fire_after(schedule, instants[-1])
        instants.append(upcoming)
        # A one-shot has no further instant, even if it fired before its time.
        upcoming = None if schedule.one_shot else fire_after(schedule, upcoming)
    return instants, upcoming


def _latest(schedule: Schedule, since: datetime, now: datetime) -> list[datetime]:
    """The last hundred instants, found from the end; an interval counts from `since`."""
    trigger, local = parse_trigger(schedule.expression), zone(schedule.timezone)
    found = list(_backwards(trigger, since, now, local, _policies(schedule)))
    if len(found) < MOST_CAUGHT_UP:
        found.append(since)
    return found[::-1]


def _backwards(
    trigger: Trigger,
    since: datetime,
    now: datetime,
    local: ZoneInfo,
    policies: tuple[Gap, OverlapHour],
) -> Iterator[datetime]:
    until = now
    for _ in range(MOST_CAUGHT_UP):
        fire = last_fire_between(trigger, since, until, local, *policies)
        if fire is None:
            return
        yield fire
        until = fire - MOMENT


def _to_fire(schedule: Schedule, instants: list[datetime], now: datetime) -> tuple[datetime, ...]:
    window = timedelta(seconds=schedule.catch_up_window_seconds)
    if schedule.catch_up == Schedule.CatchUp.SKIP:
        window = PUNCTUAL
    recent = [instant for instant in instants if now - instant <= window]
    keep = MOST_CAUGHT_UP if schedule.catch_up == Schedule.CatchUp.ALL else 1
    return tuple(recent[-keep:])


# --- traces ---------------------------------------------------------------------------------


def firing_trace_id(schedule_id: int, due_at: datetime, recorded_at: datetime) -> str:
    """The trace of a firing and its runs, known before the work exists.

    The time at which the firing was recorded makes it differ from traces of other installations.
    """
    instants = f"{schedule_id} {due_at.timestamp()} {recorded_at.timestamp()}"
    return blake2b(instants.encode(), digest_size=16).hexdigest()


# --- jitter ---------------------------------------------------------------------------------


def decision_time(schedule: Schedule, due_at: datetime) -> datetime:
    """The due time plus jitter, at which the firing is decided."""
    if not (schedule.jitter_seconds or schedule.jitter_percent):
        return due_at
    longest = timedelta(seconds=schedule.jitter_seconds)
    trigger = parse_trigger(schedule.expression)
    if schedule.jitter_percent and isinstance(trigger, IntervalTrigger):
        longest += trigger.every * schedule.jitter_percent / 100
    return due_at + longest * fraction(schedule.pk, due_at)


def fraction(schedule_id: int, due_at: datetime) -> float:
    """A pseudorandom number from 0 to 1, the same for a repeated claim of the same firing."""
    digest = blake2b(f"{schedule_id} {due_at.timestamp()}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
