"""Explains what a schedule did at a time in the past, in sentences."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents_app.models import RunEvent, Schedule
from agents_app.schedules import HistoryEntry, fire_after, read_entries
from agents_app.triggers import IntervalTrigger, parse_trigger
from agents_app.triggers.preview import clock

# People ask with a precision of minutes.
ABOUT = timedelta(seconds=60)
ACTS = ("schedule.created", "schedule.edited", "schedule.paused", "schedule.resumed")


@dataclass(frozen=True, slots=True)
class Then:
    """`firing` is the recorded firing at about that time; `before` and `after` its neighbours."""

    asked_at: datetime
    local: str
    text: str
    firing: HistoryEntry | None
    before: HistoryEntry | None
    after: HistoryEntry | None
    # When the schedule was due by its present text, recorded or not.
    due_at: datetime | None


def explain_then(schedule: Schedule, moment: datetime, now: datetime) -> Then:
    firing, before, after = _recorded(schedule, moment)
    due_at = firing.due_at if firing else _due_about(schedule, moment)
    return Then(
        asked_at=moment,
        local=_clock(schedule, moment),
        text=_told(firing) if firing else _not_recorded(schedule, moment, due_at, now),
        firing=firing,
        before=before,
        after=after,
        due_at=due_at,
    )


def _recorded(
    schedule: Schedule, moment: datetime
) -> tuple[HistoryEntry | None, HistoryEntry | None, HistoryEntry | None]:
    """The firing at about the moment if there is one, the firing before and the firing after."""
    firings = schedule.firings.all()
    earlier = read_entries(schedule, firings.filter(due_at__lte=moment).order_by("-due_at")[:2])
    later = read_entries(schedule, firings.filter(due_at__gt=moment).order_by("due_at")[:2])
    sides = [*earlier[:1], *later[:1]]
    nearest = min(sides, key=lambda entry: abs(entry.due_at - moment), default=None)
    if nearest is None or abs(nearest.due_at - moment) > ABOUT:
        nearest = None
    around = ([entry for entry in side if entry is not nearest] for side in (earlier, later))
    before, after = (side[0] if side else None for side in around)
    return nearest, before, after


def _due_about(schedule: Schedule, moment: datetime) -> datetime | None:
    """The due time at about the moment; None for intervals, which depend on earlier runs."""
    if isinstance(parse_trigger(schedule.expression), IntervalTrigger):
        return None
    fires = _fires(schedule, moment - ABOUT, moment + ABOUT)
    return min(fires, key=lambda fire: abs(fire - moment), default=None)


def _fires(schedule: Schedule, after: datetime, until: datetime) -> Iterator[datetime]:
    fire = fire_after(schedule, after)
    while fire is not None and fire <= until:
        yield fire
        fire = fire_after(schedule, fire)


# --- in words -------------------------------------------------------------------------------


def _told(entry: HistoryEntry) -> str:
    became = f"; {entry.became}" if entry.became else ""
    return f"It was due at {entry.local}: {entry.outcome}, {entry.because}{became}."


def _not_recorded(
    schedule: Schedule, moment: datetime, due_at: datetime | None, now: datetime
) -> str:
    if moment > now:
        return _to_come(schedule, due_at)
    if moment < schedule.created_at:
        return f"It did not exist then: it was created at {_clock(schedule, schedule.created_at)}."
    if due_at is None:
        return "Nothing was due then."
    due = f"By the times it has now it was due at {_clock(schedule, due_at)}"
    return f"{due}, but nothing is recorded: {_state_then(schedule, moment)}."


def _to_come(schedule: Schedule, due_at: datetime | None) -> str:
    if due_at is None:
        return "Nothing is due then."
    when = f"It is due at {_clock(schedule, due_at)}, which is still to come"
    return f"{when}." if schedule.state == "active" else f"{when}; but it is {schedule.state}."


def _state_then(schedule: Schedule, moment: datetime) -> str:
    act = _last_act(schedule, moment)
    if act is not None and act.name == "schedule.paused":
        detail = act.detail.removeprefix(f"{schedule.name}: ")
        return f"it had been paused at {_clock(schedule, act.at)} by {detail}"
    return "it was not active then, or has other times since, or the record is no longer kept"


def _last_act(schedule: Schedule, moment: datetime) -> RunEvent | None:
    """The last event of a person for the schedule before the moment; such events have no run."""
    acts = RunEvent.objects.filter(run__isnull=True, agent=schedule.agent_id, at__lte=moment)
    named = acts.filter(name__in=ACTS, detail__startswith=f"{schedule.name}: ")
    return named.order_by("-id").first()


def _clock(schedule: Schedule, moment: datetime) -> str:
    return clock(moment, schedule.timezone)
