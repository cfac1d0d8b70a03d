"""When a schedule will fire, as people read it: in its own zone and in UTC; no rows, pure."""

from dataclasses import dataclass
from datetime import UTC, datetime

from agents_app.errors import DroverError
from agents_app.triggers import IntervalTrigger, Trigger, parse_trigger, upcoming, zone

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Fire:
    local: str
    utc: str


@dataclass(frozen=True, slots=True)
class Preview:
    """The next fires, or what is wrong with the text; `note` says how to read them."""

    fires: tuple[Fire, ...] = ()
    note: str = ""
    error: str = ""


def preview(expression: str, timezone: str, first_at: datetime | None, now: datetime) -> Preview:
    """`first_at` is the armed fire of a saved schedule; without it the schedule would be new."""
    try:
        trigger, local = parse_trigger(expression.strip()), zone(timezone.strip())
        moments = _moments(trigger, timezone.strip(), first_at, now)
    except DroverError as error:
        # Somebody who has not begun to write has done nothing wrong.
        return Preview(error=str(error)) if expression.strip() else Preview(note=str(error))
    fires = tuple(Fire(_clock(at.astimezone(local)), _clock(at)) for at in moments)
    note = "Counted from the end of each run." if isinstance(trigger, IntervalTrigger) else ""
    return Preview(fires, note)


def _moments(
    trigger: Trigger, timezone: str, first_at: datetime | None, now: datetime
) -> list[datetime]:
    if first_at is None and not isinstance(trigger, IntervalTrigger):
        return upcoming(trigger, now, zone(timezone), SHOWN)
    # A new interval fires at once; what follows assumes runs that take no time.
    first = (first_at or now).astimezone(UTC)
    return [first, *upcoming(trigger, first, zone(timezone), SHOWN - 1)]


def _clock(moment: datetime) -> str:
    seconds = ":%S" if moment.second else ""
    return moment.strftime(f"%a %d %b %Y %H:%M{seconds} %Z")
