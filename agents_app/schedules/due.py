"""Due schedules: each due instant is recorded as one firing, and the next fire time is set."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog
from django.db.models import F, QuerySet

from agents_app.conf import CONF
from agents_app.database import (
    ENGINE,
    fetch_each,
    fetch_one,
    from_database_time,
    in_transaction,
    insert_many,
)
from agents_app.errors import TriggerParseError
from agents_app.models import Firing, Schedule, Tenant
from agents_app.runs import TENANT_DISABLED, lock_agent, schedule_states
from agents_app.schedules.firing_log import LoggedFiring, log_claimed, log_decided
from agents_app.schedules.firings import decide_firings, read_live_states
from agents_app.schedules.plan import (
    Plan,
    decision_time,
    fire_after,
    fire_after_pause,
    firing_trace_id,
    fraction,
    plan_firings,
)
from agents_app.triggers import BOOT_EXPRESSION, LATE

log = structlog.get_logger("drover.due")
SCHEDULES_IN_ONE_COMMIT = 500
AHEAD = timedelta(seconds=1.5)
MOST_AHEAD = 2000
MARGIN_BEFORE_FIRST = timedelta(milliseconds=50)
FIRED_BEFORE = "the schedule had already fired at this time"


def fire_due_schedules(now: datetime, clock: Callable[[], datetime]) -> int:
    """Resume, claim and decide everything that is due; returns the number of due schedules."""
    resume_expired_pauses(now)
    claimed = claim_due_schedules(now)
    decide_firings(clock())
    return claimed


def fire_now(schedule_id: int, now: datetime) -> int | None:
    """Commit and decide a firing in addition to those of the schedule's trigger; returns its id.

    None: the schedule has fired at this instant already.
    """
    known = Schedule.objects.annotate(agent_name=F("agent__name")).get(pk=schedule_id)
    new = _NewFiring(known, now, now)
    firings = in_transaction(lambda: _insert_firings([new], now))
    log_claimed(firings)
    decide_firings(now)
    return firings[0].firing_id if firings else None


def arm_boot_schedules(booted_at: datetime, now: datetime) -> int:
    """Make `@reboot` schedules due that have not fired since the host booted; returns their number.

    A schedule that was created after the boot waits for the next one, as in cron."""

    def arm() -> int:
        waiting = Schedule.objects.filter(state=Schedule.State.ACTIVE, next_fire_at__isnull=True)
        waiting = waiting.filter(expression=BOOT_EXPRESSION, created_at__lt=booted_at)
        keys = set(waiting.select_for_update(of=("self",)).values_list("pk", flat=True))
        # Read after the lock: another beat may have fired them meanwhile.
        fired = Firing.objects.filter(schedule__in=keys, recorded_at__gte=booted_at)
        keys -= set(fired.values_list("schedule_id", flat=True))
        return waiting.filter(pk__in=keys).update(next_fire_at=now, updated_at=now)

    return in_transaction(arm)


def claim_due_schedules(now: datetime) -> int:
    """Commit firings for all due schedules; several beats may do so concurrently."""
    claimed = 0
    while True:
        batch, firings = in_transaction(lambda: _claim_batch(now))
        log_claimed([f for f in firings if f.outcome == Firing.Outcome.UNDECIDED])
        # The line schedule.missed has the number of missed firings.
        log_decided([f for f in firings if f.reason == Firing.Reason.TENANT_DISABLED])
        claimed += batch
        if batch < SCHEDULES_IN_ONE_COMMIT:
            return claimed


# The states are literals: SQLite uses a partial index only if the statement contains them.
_NEXT = """
SELECT (SELECT min(next_fire_at) FROM drover_schedule
        WHERE state = 'active' AND next_fire_at IS NOT NULL),
       (SELECT min(pause_until) FROM drover_schedule
        WHERE state = 'paused' AND pause_until IS NOT NULL),
       (SELECT min(decide_at) FROM drover_firing WHERE outcome = '')"""


def next_due_at() -> datetime | None:
    """The next time at which beat has to do something; beat polls this value."""
    found = fetch_one(_NEXT, []) or ()
    return min((from_database_time(at) for at in found if at is not None), default=None)


def compute_next_fires_ahead(now: datetime, clock: Callable[[], datetime]) -> None:
    """Compute next fire times before thousands of schedules are due: half of the cost of a claim.

    The results stay in the caches of `fire_after`. Ends shortly before the first schedule is due.
    """
    soon = Schedule.objects.filter(state=Schedule.State.ACTIVE, next_fire_at__gt=now)
    soon = soon.filter(next_fire_at__lte=now + AHEAD).order_by("next_fire_at")[:MOST_AHEAD]
    first_at = None
    for schedule in soon:
        assert schedule.next_fire_at is not None
        first_at = first_at or schedule.next_fire_at
        if first_at - clock() < MARGIN_BEFORE_FIRST:
            return
        with suppress(TriggerParseError):
            fire_after(schedule, schedule.next_fire_at)


# --- ended pauses ---------------------------------------------------------------------------


def resume_expired_pauses(now: datetime) -> int:
    """Resume the schedules whose pause has ended; returns their number."""
    expired = Schedule.objects.filter(state=Schedule.State.PAUSED, pause_until__lte=now)
    return sum(in_transaction(partial(_resume, expired, schedule, now)) for schedule in expired)


def _resume(expired: "QuerySet[Schedule]", known: Schedule, now: datetime) -> bool:
    lock_agent(known.agent_id)
    schedule = expired.filter(pk=known.pk).first()
    if schedule is None:
        return False  # resumed, and perhaps paused again, since it was read
    try:
        upcoming = next_fire_after_pause(schedule, now)
    except TriggerParseError:
        upcoming = now  # the claim reports the error
    resumed = schedule_states.resume_schedule(schedule.pk, now, Schedule.State.PAUSED, upcoming)
    if resumed:
        log.info("schedule.resumed", schedule_id=schedule.pk, until=str(schedule.pause_until))
    return resumed


def next_fire_after_pause(
    schedule: Schedule, now: datetime, *, at_once: bool = False
) -> datetime | None:
    """When a resumed schedule fires next; a one-shot whose time passed during the pause is due now.

    Requires a transaction with the agent locked, so that its unfinished work does not end.
    """
    fired = schedule.one_shot and schedule.next_fire_at is None
    if fired and _has_unfinished_work(schedule):
        return None  # the end of its work ends the schedule
    upcoming = now if at_once else fire_after_pause(schedule, now)
    return upcoming or (now if schedule.one_shot else None)


def _has_unfinished_work(schedule: Schedule) -> bool:
    undecided = schedule.firings.filter(outcome__in=["", Firing.Outcome.POLLING])
    return bool(read_live_states([schedule.pk])) or undecided.exists()


# --- the claim ------------------------------------------------------------------------------


def _claim_batch(now: datetime) -> tuple[int, list[LoggedFiring]]:
    """The number of due schedules, and their new firings."""
    schedules = _lock_due_schedules(now)
    if not schedules:
        return 0, []
    # Only intervals that are counted from the end of the last run depend on unfinished work.
    busy = read_live_states([s.pk for s in schedules if s.interval_seconds is not None])
    disabled = set(Tenant.objects.filter(disabled_at__isnull=False).values_list("pk", flat=True))
    plans = [
        (s, p)
        for s in schedules
        if (p := _plan_or_pause(s, now, busy=s.pk in busy, disabled=s.tenant_id in disabled))
    ]
    firings = [firing for s, p in plans for firing in _new_firings(s, p)]
    _spread(firings, now)
    inserted = _insert_firings(firings, now)
    _set_next_fires(plans, now)
    return len(schedules), inserted


def _lock_due_schedules(now: datetime) -> list[Schedule]:
    """Each with `agent_name`, for the log."""
    due = Schedule.objects.filter(state=Schedule.State.ACTIVE, next_fire_at__lte=now)
    due = due.annotate(agent_name=F("agent__name"))
    # The lock has no effect on SQLite, where the transaction holds the only lock there is.
    due = due.order_by("next_fire_at").select_for_update(skip_locked=True, of=("self",))
    return list(due[:SCHEDULES_IN_ONE_COMMIT])


def _plan_or_pause(schedule: Schedule, now: datetime, *, busy: bool, disabled: bool) -> Plan | None:
    if disabled and schedule.one_shot:
        schedule_states.pause_schedule(schedule.pk, now, TENANT_DISABLED)
        return None
    try:
        return plan_firings(schedule, now, busy=busy, disabled=disabled)
    except (TriggerParseError, OverflowError) as error:
        # Stored by another version of Drover; the other schedules must not wait for this one.
        log.warning("schedule.unreadable", schedule_id=schedule.pk, error=str(error))
        schedule_states.pause_schedule(schedule.pk, now, str(error))
        return None


@dataclass(slots=True)
class _NewFiring:
    """A firing that is not stored yet."""

    schedule: Schedule
    due_at: datetime
    decide_at: datetime
    outcome: str = Firing.Outcome.UNDECIDED
    reason: str = ""


def _new_firings(schedule: Schedule, p: Plan) -> list[_NewFiring]:
    if p.missed_count:
        log.warning("schedule.missed", schedule_id=schedule.pk, count=p.missed_count)
    skipped = [_NewFiring(schedule, at, at, Firing.Outcome.SKIPPED, p.reason) for at in p.skipped]
    return skipped + [_NewFiring(schedule, at, decision_time(schedule, at)) for at in p.fire]


def _insert_firings(firings: list[_NewFiring], now: datetime) -> list[LoggedFiring]:
    """Insert firings, except firings that a beat inserted before it died; returns the new ones."""
    rows = [
        (
            *(f.schedule.tenant_id, f.schedule.pk, f.due_at, now, f.decide_at),
            *(str(f.outcome), str(f.reason)),
        )
        for f in firings
    ]
    returned = "id, schedule_id, tenant_id, due_at, outcome, reason"
    inserted = insert_many("drover_firing", _FIRING_COLUMNS, rows, returned)
    # `_lock_due_schedules` annotates the name.
    names = {f.schedule.pk: vars(f.schedule)["agent_name"] for f in firings}
    return [
        LoggedFiring(
            *(firing_id, schedule_id, tenant_id, names[schedule_id]),
            firing_trace_id(schedule_id, from_database_time(due_at), now),
            *(outcome, reason),
        )
        for firing_id, schedule_id, tenant_id, due_at, outcome, reason in inserted
    ]


def _spread(firings: list[_NewFiring], now: datetime) -> None:
    """Spread the decisions about late firings over some seconds, after a downtime."""
    undecided = [f for f in firings if f.outcome == Firing.Outcome.UNDECIDED]
    # A firing that waits for its jitter is not late.
    late = [f for f in undecided if now - f.decide_at > LATE]
    if len(late) <= CONF.spread_after:
        return
    for firing in late:
        share = fraction(firing.schedule.pk, firing.due_at)
        firing.decide_at = now + timedelta(seconds=CONF.spread_seconds * share)


_FIRING_COLUMNS = {
    **dict.fromkeys(("tenant_id", "schedule_id"), "bigint"),
    **dict.fromkeys(("due_at", "recorded_at", "decide_at"), "timestamptz"),
    **dict.fromkeys(("outcome", "reason"), "text"),
}
_NEXT_FIRE_COLUMNS = {
    **dict.fromkeys(("id", "fired", "skipped", "missed", "late"), "bigint"),
    **dict.fromkeys(("was", "next", "last", "changed"), "timestamptz"),
}
_SET_NEXT_FIRES = """
UPDATE drover_schedule AS s
SET next_fire_at = v.next, last_fire_at = COALESCE(v.last, s.last_fire_at),
    fire_count = s.fire_count + v.fired, skipped_count = s.skipped_count + v.skipped,
    missed_count = s.missed_count + v.missed, late_count = s.late_count + v.late,
    updated_at = v.changed
FROM v WHERE s.id = v.id AND s.next_fire_at = v.was RETURNING 1"""


def _set_next_fires(plans: list[tuple[Schedule, Plan]], now: datetime) -> None:
    """Set the next fire times, except of schedules that were changed since they were read."""
    if not plans:
        return
    rows = [
        (
            s.pk,
            len(p.fire),
            0 if p.missed_count else len(p.skipped),
            p.missed_count,
            sum(now - at > LATE for at in p.fire),
            s.next_fire_at,
            p.next_fire_at,
            p.fire[-1] if p.fire else None,
            now,
        )
        for s, p in plans
    ]
    # On PostgreSQL a statement for each schedule costs more than the rest of a claim.
    columns = dict(zip(_NEXT_FIRE_COLUMNS, zip(*rows, strict=True), strict=True))
    fetch_each(ENGINE.with_rows(_SET_NEXT_FIRES, _NEXT_FIRE_COLUMNS, columns))
    _end_one_shots([(s, p) for s, p in plans if s.one_shot], now)


def _end_one_shots(plans: list[tuple[Schedule, Plan]], now: datetime) -> None:
    """End the one-shots that are too late, or whose new time equals that of an earlier firing."""
    keys = [s.pk for s, p in plans if p.fire]
    new = Firing.objects.filter(schedule__in=keys, outcome=Firing.Outcome.UNDECIDED)
    undecided = set(new.values_list("schedule_id", flat=True)) if keys else set()
    for schedule, p in plans:
        if not p.fire:
            schedule_states.end_one_shot(schedule.pk, now, "failed", f"skipped: {p.reason}")
        elif schedule.pk not in undecided:
            schedule_states.end_one_shot(schedule.pk, now, "completed", FIRED_BEFORE)
