"""What a schedule's text and policies mean at a given moment; reads and writes no rows."""

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

# Older instants than these are counted one by one no more: a year of minutes is half a million.
MOST_INSTANTS = 1000
MOST_CAUGHT_UP = 100
# With catch_up: skip, an instant is on time if a busy or restarting beat comes this late.
PUNCTUAL = timedelta(seconds=60)
# Later than this a firing counts as late: no busy beat comes so late, one that was down does.
LATE = timedelta(seconds=10)
MOMENT = timedelta(microseconds=1)
# For so long nothing of a disabled tenant is looked at again.
DISABLED_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Plan:
    """What one look at a due schedule leads to."""

    fire: tuple[datetime, ...] = ()
    skipped: tuple[datetime, ...] = ()
    reason: str = ""
    missed_count: int = 0
    next_fire_at: datetime | None = None


# --- text to fires --------------------------------------------------------------------------


def understand(schedule: Schedule, now: datetime, *, allow_past: bool = False) -> None:
    """What the schedule's text means from now on; a zone that the text names is the schedule's."""
    local = zone(schedule.timezone)
    when = parse_when(schedule.text, now, local, *_policies(schedule), allow_past=allow_past)
    schedule.expression = when.trigger.expression
    schedule.timezone = when.zone.key
    schedule.one_shot = isinstance(when.trigger, OnceTrigger)


def arm(schedule: Schedule, now: datetime) -> None:
    """The first fire of a new or edited schedule; `15m` at once, `every 15 minutes` after those."""
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
    """Strictly later, by the schedule's trigger, zone and policies."""
    trigger = parse_trigger(schedule.expression)
    return next_fire(trigger, after, zone(schedule.timezone), *_policies(schedule))


def after_pause(schedule: Schedule, now: datetime) -> datetime | None:
    """Where it goes on, never at once: `every 2 hours` keeps its rhythm, `2h` waits as long."""
    armed = schedule.next_fire_at
    if armed is None or (armed <= now and schedule.interval_seconds is not None):
        return fire_after(schedule, now)
    return _instants(schedule, now)[1]


def _anchor(schedule: Schedule, trigger: IntervalTrigger) -> str:
    return schedule.anchor or trigger.anchor


def _policies(schedule: Schedule) -> tuple[Gap, OverlapHour]:
    return cast("Gap", schedule.gap), cast("OverlapHour", schedule.overlap_hour)


# --- what is due ----------------------------------------------------------------------------


def plan(schedule: Schedule, now: datetime, *, busy: bool, disabled: bool = False) -> Plan:
    """The instants since the schedule was armed, sorted by its catch-up policy."""
    assert schedule.next_fire_at is not None
    if disabled:
        later = after_pause(schedule, now + DISABLED_FOR)
        armed = (schedule.next_fire_at,)
        return Plan(skipped=armed, reason=Firing.Reason.TENANT_DISABLED, next_fire_at=later)
    if schedule.interval_seconds is not None:
        # It counts from a completion, so while the last run goes on no instant is due.
        at_once = () if busy else (schedule.next_fire_at,)
        every = timedelta(seconds=schedule.interval_seconds)
        return Plan(at_once, next_fire_at=now + every)
    instants, upcoming = _instants(schedule, now)
    fire = _to_fire(schedule, instants, now)
    caught_up = set(fire)
    missed = [instant for instant in instants if instant not in caught_up]
    shown = tuple(missed[-MOST_CAUGHT_UP:])
    return Plan(fire, shown, Firing.Reason.MISSED, len(missed), upcoming)


def _instants(schedule: Schedule, now: datetime) -> tuple[list[datetime], datetime | None]:
    """Every instant from the armed one until now, and the one after."""
    instants: list[datetime] = []
    upcoming = schedule.next_fire_at
    while upcoming is not None and upcoming <= now:
        if len(instants) == MOST_INSTANTS:
            instants += _latest(schedule, upcoming, now)
            return instants, fire_after(schedule, instants[-1])
        instants.append(upcoming)
        # One that was asked to fire before its time has fired, too.
        upcoming = None if schedule.one_shot else fire_after(schedule, upcoming)
    return instants, upcoming


def _latest(schedule: Schedule, since: datetime, now: datetime) -> list[datetime]:
    """The last hundred instants, found from the end; an interval's are counted from `since`."""
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


# --- jitter ---------------------------------------------------------------------------------


def jittered(schedule: Schedule, due_at: datetime) -> datetime:
    """When a firing is decided: its instant itself stays what the text says."""
    if not (schedule.jitter_seconds or schedule.jitter_percent):
        return due_at
    longest = timedelta(seconds=schedule.jitter_seconds)
    trigger = parse_trigger(schedule.expression)
    if schedule.jitter_percent and isinstance(trigger, IntervalTrigger):
        longest += trigger.every * schedule.jitter_percent / 100
    return due_at + longest * fraction(schedule.pk, due_at)


def fraction(schedule_id: int, due_at: datetime) -> float:
    """From 0 to 1, by chance but the same again for the same firing: a claim may be repeated."""
    digest = blake2b(f"{schedule_id} {due_at.timestamp()}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
