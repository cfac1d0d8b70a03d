"""Explains what a schedule did at a time in the past, in sentences."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from agents_app.console import HistoryEntry, PastExplanation
from agents_app.errors import Refused
from agents_app.models import RunEvent, Schedule
from agents_app.schedules import fire_after, read_entries
from agents_app.triggers import IntervalTrigger, parse_trigger
from agents_app.triggers.preview import clock

# Users enter times with a precision of minutes.
TOLERANCE = timedelta(seconds=60)
# Within them every time has a local time in every zone.
FIRST, LAST = datetime(1900, 1, 1, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
STATE_EVENTS = ("schedule.created", "schedule.edited", "schedule.paused", "schedule.resumed")


def explain_past(schedule: Schedule, moment: datetime, now: datetime) -> PastExplanation:
    if not FIRST <= moment <= LAST:
        raise Refused("the time is before the year 1900 or after the year 9999: choose another")
    firing, before, after = _find_firings(schedule, moment)
    due_at = firing.due_at if firing else _due_near(schedule, moment)
    return PastExplanation(
        asked_at=moment,
        local=_clock(schedule, moment),
        text=_firing_text(firing) if firing else _no_firing_text(schedule, moment, due_at, now),
        firing=firing,
        before=before,
        after=after,
        due_at=due_at,
    )


def _find_firings(
    schedule: Schedule, moment: datetime
) -> tuple[HistoryEntry | None, HistoryEntry | None, HistoryEntry | None]:
    """The firing near the moment if there is one, the firing before and the firing after."""
    firings = schedule.firings.all()
    earlier = read_entries(schedule, firings.filter(due_at__lte=moment).order_by("-due_at")[:2])
    later = read_entries(schedule, firings.filter(due_at__gt=moment).order_by("due_at")[:2])
    sides = [*earlier[:1], *later[:1]]
    nearest = min(sides, key=lambda entry: abs(entry.due_at - moment), default=None)
    if nearest is None or abs(nearest.due_at - moment) > TOLERANCE:
        nearest = None
    around = ([entry for entry in side if entry is not nearest] for side in (earlier, later))
    before, after = (side[0] if side else None for side in around)
    return nearest, before, after


def _due_near(schedule: Schedule, moment: datetime) -> datetime | None:
    """The due time near the moment; None for intervals, which depend on earlier runs."""
    if isinstance(parse_trigger(schedule.expression), IntervalTrigger):
        return None
    fires = _fires(schedule, moment - TOLERANCE, moment + TOLERANCE)
    return min(fires, key=lambda fire: abs(fire - moment), default=None)


def _fires(schedule: Schedule, after: datetime, until: datetime) -> Iterator[datetime]:
    fire = fire_after(schedule, after)
    while fire is not None and fire <= until:
        yield fire
        fire = fire_after(schedule, fire)


# --- texts ----------------------------------------------------------------------------------


def _firing_text(entry: HistoryEntry) -> str:
    work = f"; {entry.work_text}" if entry.work_text else ""
    return f"Due at {entry.local}: {entry.outcome}, {entry.outcome_text}{work}."


def _no_firing_text(
    schedule: Schedule, moment: datetime, due_at: datetime | None, now: datetime
) -> str:
    if moment > now:
        return _future_text(schedule, due_at)
    if moment < schedule.created_at:
        return f"The schedule was created later, at {_clock(schedule, schedule.created_at)}."
    if due_at is None:
        return "The schedule was not due at that time."
    due = f"By its present times the schedule was due at {_clock(schedule, due_at)}"
    return f"{due}, but no firing is recorded: {_missing_reason(schedule, moment)}."


def _future_text(schedule: Schedule, due_at: datetime | None) -> str:
    if due_at is None:
        return "The schedule is not due at that time."
    when = f"The schedule is due at {_clock(schedule, due_at)}, in the future"
    return f"{when}." if schedule.state == "active" else f"{when}, but it is {schedule.state}."


def _missing_reason(schedule: Schedule, moment: datetime) -> str:
    event = _last_state_event(schedule, moment)
    if event is not None and event.name == "schedule.paused":
        detail = event.detail.removeprefix(f"{schedule.name}: ")
        return f"it was paused at {_clock(schedule, event.at)} by {detail}"
    return "it was not active, its times were changed since, or the record is no longer kept"


def _last_state_event(schedule: Schedule, moment: datetime) -> RunEvent | None:
    """The last event that changed the schedule before the moment; such events have no run."""
    events = RunEvent.objects.filter(run__isnull=True, agent=schedule.agent_id, at__lte=moment)
    named = events.filter(name__in=STATE_EVENTS, detail__startswith=f"{schedule.name}: ")
    return named.order_by("-id").first()


def _clock(schedule: Schedule, moment: datetime) -> str:
    return clock(moment, schedule.timezone)
