"""It is due: each instant of each active schedule becomes one firing, and the next is armed."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import structlog
from django.db import connection
from django.db.models import Exists, OuterRef

from agents_app import lifecycle
from agents_app.commit import in_transaction
from agents_app.errors import TriggerParseError
from agents_app.models import Firing, Schedule, WorkItem
from agents_app.rows import stamp
from agents_app.triggers import (
    IntervalTrigger,
    Trigger,
    last_fire_between,
    next_fire,
    parse_trigger,
    zone,
)

log = structlog.get_logger("drover.due")
SCHEDULES_IN_ONE_COMMIT = 500
# Older instants than these are counted one by one no more: a year of minutes is half a million.
MOST_INSTANTS = 1000
MOST_CAUGHT_UP = 100
# With catch_up: skip, an instant is on time if a busy or restarting beat comes this late.
PUNCTUAL = timedelta(seconds=60)
MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Plan:
    """What one look at a due schedule leads to."""

    fire: tuple[datetime, ...]
    missed: tuple[datetime, ...]
    missed_count: int
    next_fire_at: datetime | None


def plan(schedule: Schedule, now: datetime, *, busy: bool) -> Plan:
    """Pure: the instants since the schedule was armed, sorted by its catch-up policy."""
    assert schedule.next_fire_at is not None
    trigger = parse_trigger(schedule.expression)
    if isinstance(trigger, IntervalTrigger):
        # It counts from a completion, so while the last run goes on no instant is due.
        at_once = () if busy else (schedule.next_fire_at,)
        return Plan(at_once, (), 0, next_fire(trigger, now, zone(schedule.timezone)))
    instants, upcoming = _instants(schedule, now)
    fire = _to_fire(schedule, instants, now)
    missed = [instant for instant in instants if instant not in set(fire)]
    return Plan(fire, tuple(missed[-MOST_CAUGHT_UP:]), len(missed), upcoming)


def _instants(schedule: Schedule, now: datetime) -> tuple[list[datetime], datetime | None]:
    """Every instant from the armed one until now, and the one after."""
    trigger, local = parse_trigger(schedule.expression), zone(schedule.timezone)
    instants: list[datetime] = []
    upcoming = schedule.next_fire_at
    while upcoming is not None and upcoming <= now:
        if len(instants) == MOST_INSTANTS:
            instants += _latest(trigger, upcoming, now, local)
            return instants, next_fire(trigger, now, local)
        instants.append(upcoming)
        upcoming = next_fire(trigger, upcoming, local)
    return instants, upcoming


def _latest(trigger: Trigger, since: datetime, now: datetime, local: ZoneInfo) -> list[datetime]:
    """The last hundred instants, found from the end."""
    found: list[datetime] = []
    until: datetime | None = last_fire_between(trigger, since, now, local)
    while until is not None and len(found) < MOST_CAUGHT_UP:
        found.append(until)
        until = last_fire_between(trigger, since, until - MOMENT, local)
    return found[::-1]


def _to_fire(schedule: Schedule, instants: list[datetime], now: datetime) -> tuple[datetime, ...]:
    window = timedelta(seconds=schedule.catch_up_window_seconds)
    if schedule.catch_up == Schedule.CatchUp.SKIP:
        window = PUNCTUAL
    recent = [instant for instant in instants if now - instant <= window]
    keep = MOST_CAUGHT_UP if schedule.catch_up == Schedule.CatchUp.ALL else 1
    return tuple(recent[-keep:])


def claim_due_schedules(now: datetime) -> int:
    """Record what is due. Any number of beats may do this at once: the rows decide."""
    claimed = 0
    while batch := in_transaction(lambda: _claim_batch(now)):
        claimed += batch
        if batch < SCHEDULES_IN_ONE_COMMIT:
            break
    return claimed


def next_due_at() -> datetime | None:
    active = Schedule.objects.filter(state=Schedule.State.ACTIVE, next_fire_at__isnull=False)
    return active.order_by("next_fire_at").values_list("next_fire_at", flat=True).first()


def _claim_batch(now: datetime) -> int:
    schedules = _due(now)
    if not schedules:
        return 0
    plans = [(s, p) for s in schedules if (p := _plan_or_pause(s, now))]
    firings = [firing for s, p in plans for firing in _firings(s, p, now)]
    # A firing that exists already was recorded by a beat that died before it could arm the next.
    Firing.objects.bulk_create(firings, ignore_conflicts=True)
    _arm(plans)
    return len(schedules)


def _plan_or_pause(schedule: Schedule, now: datetime) -> Plan | None:
    try:
        return plan(schedule, now, busy=getattr(schedule, "busy", False))
    except TriggerParseError as error:
        # Stored by an older or newer Drover: nobody's fires may wait for it.
        log.warning("schedule.unreadable", schedule_id=schedule.pk, error=str(error))
        lifecycle.pause_schedule(schedule.pk, str(error))
        return None


def _due(now: datetime) -> list[Schedule]:
    live = WorkItem.objects.filter(schedule=OuterRef("pk"), state__in=["queued", "admitted"])
    due = (
        Schedule.objects.filter(state=Schedule.State.ACTIVE, next_fire_at__lte=now)
        .annotate(busy=Exists(live))
        .order_by("next_fire_at")
    )
    if connection.vendor == "postgresql":
        due = due.select_for_update(skip_locked=True, of=("self",))
    return list(due[:SCHEDULES_IN_ONE_COMMIT])


def _firings(schedule: Schedule, p: Plan, now: datetime) -> list[Firing]:
    def firing(due_at: datetime, outcome: str, reason: str) -> Firing:
        return Firing(
            tenant_id=schedule.tenant_id,
            schedule_id=schedule.pk,
            due_at=due_at,
            recorded_at=now,
            outcome=outcome,
            reason=reason,
        )

    if p.missed:
        log.warning("schedule.missed", schedule_id=schedule.pk, count=p.missed_count)
    missed = [firing(at, Firing.Outcome.SKIPPED, Firing.Reason.MISSED) for at in p.missed]
    return missed + [firing(at, Firing.Outcome.UNDECIDED, "") for at in p.fire]


_ARM = """
UPDATE drover_schedule
SET next_fire_at = %s, last_fire_at = COALESCE(%s, last_fire_at), fire_count = fire_count + %s,
    missed_count = missed_count + %s
WHERE id = %s AND next_fire_at = %s"""


def _arm(plans: list[tuple[Schedule, Plan]]) -> None:
    """Compare and set: a schedule edited or claimed meanwhile keeps what it was given there."""
    rows: list[list[Any]] = [
        [
            stamp(p.next_fire_at) if p.next_fire_at else None,
            stamp(p.fire[-1]) if p.fire else None,
            len(p.fire),
            p.missed_count,
            s.pk,
            stamp(s.next_fire_at) if s.next_fire_at else None,
        ]
        for s, p in plans
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_ARM, rows)
