"""What the next clock change of a zone does to a schedule's fires, as people read it; pure."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from agents_app.triggers import (
    Change,
    CronTrigger,
    Gap,
    OverlapHour,
    Trigger,
    fires_between,
    last_fire_between,
    next_clock_change,
    next_fire,
)
from agents_app.triggers.preview.wall_clock import Fire, as_fire

# Of those that fall into the hour of the change: a schedule may fire every minute.
SHOWN_IN_THE_HOUR = 4
SHOWN_WALLS = 3
MOST_IN_THE_HOUR = 200
MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ClockChange:
    """`text` says when the clocks change, `note` which times are left out because of it."""

    at: datetime
    text: str
    fires: tuple[Fire, ...]
    note: str = ""

    @property
    def special(self) -> bool:
        """Some time is left out or comes twice: worth showing to everybody."""
        remarks = [fire.remark for fire in self.fires if fire.remark]
        return bool(self.note) or any(not self.text.startswith(remark) for remark in remarks)


@dataclass(frozen=True, slots=True)
class ClockRule:
    """A trigger with what decides about its fires."""

    trigger: Trigger
    zone: ZoneInfo
    gap: Gap = "shift"
    overlap_hour: OverlapHour = "first"

    @property
    def policies(self) -> tuple[Gap, OverlapHour]:
        return self.gap, self.overlap_hour

    def next(self, after: datetime) -> datetime | None:
        return next_fire(self.trigger, after, self.zone, *self.policies)

    def between(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        return fires_between(self.trigger, after, until, self.zone, limit, *self.policies)

    def last(self, after: datetime, until: datetime) -> datetime | None:
        return last_fire_between(self.trigger, after, until, self.zone, *self.policies)


@dataclass(frozen=True, slots=True)
class Hour:
    """The hour, or whatever it is, that a change leaves out or brings twice."""

    at: datetime
    before: timedelta
    after: timedelta

    @classmethod
    def of(cls, change: Change) -> "Hour":
        before, after = (timedelta(seconds=s) for s in (change.before, change.after))
        return cls(datetime.fromtimestamp(change.at, UTC), before, after)

    @property
    def forward(self) -> bool:
        return self.after > self.before

    @property
    def size(self) -> timedelta:
        return abs(self.after - self.before)

    @property
    def start(self) -> datetime:
        """What comes twice begins before the clocks go back."""
        return self.at if self.forward else self.at - self.size

    @property
    def end(self) -> datetime:
        return self.at + self.size - MOMENT

    @property
    def text(self) -> str:
        way = "forward" if self.forward else "back"
        return f"clocks go {way} {_span(self.size)} at {_wall(self.at, self.before)}"


def fires_around_change(rule: ClockRule, first: datetime, now: datetime) -> ClockChange | None:
    """The last fire before, those in the hour itself, the first after; `first` is the next of all.

    None if the clocks of the zone do not change within a year, or before anything fires.
    """
    change = next_clock_change(rule.zone, now)
    if change is None or first > (hour := Hour.of(change)).end:
        return None
    left_out = _left_out(rule, hour) if hour.forward else []
    moments = _moments(rule, first, hour)
    return ClockChange(
        at=hour.at,
        text=f"{hour.text} on {(hour.at + hour.before):%a %d %b %Y}",
        fires=tuple(_remarked(at, rule, hour, left_out, moments) for at in moments),
        note=_skipped(left_out, hour) if rule.gap == "skip" else "",
    )


# --- which fires ----------------------------------------------------------------------------


def _moments(rule: ClockRule, first: datetime, hour: Hour) -> list[datetime]:
    """Each found from the one before it, because an interval counts on."""
    before = rule.last(first, hour.start - MOMENT) if first < hour.start else None
    found = [before or first]
    found += rule.between(found[-1], hour.end, SHOWN_IN_THE_HOUR)
    last = rule.last(found[-1], hour.end) or found[-1]
    after = rule.next(last)
    return [*found, after] if after else found


def _left_out(rule: ClockRule, hour: Hour) -> list[datetime]:
    """What a fixed time asks for in the hour that is not there, as if it were shifted."""
    if not isinstance(rule.trigger, CronTrigger):
        return []
    period = hour.start - MOMENT, hour.end, MOST_IN_THE_HOUR
    there = set(replace(rule, gap="skip").between(*period))
    return [at for at in replace(rule, gap="shift").between(*period) if at not in there]


# --- remarks --------------------------------------------------------------------------------


def _remarked(
    at: datetime, rule: ClockRule, hour: Hour, left_out: list[datetime], moments: list[datetime]
) -> Fire:
    remarks = []
    if at == next((moment for moment in moments if moment >= hour.at), None):
        remarks.append(hour.text)
    if hour.forward:
        remarks.append(_moved(at, rule, hour, left_out))
    elif hour.start <= at <= hour.end:
        offset, which = (hour.before, "first") if at < hour.at else (hour.after, "second")
        remarks.append(f"{_wall(at, offset)} comes twice: the {which} time")
    return as_fire(at, rule.zone, "; ".join(filter(None, remarks)))


def _moved(at: datetime, rule: ClockRule, hour: Hour, left_out: list[datetime]) -> str:
    if rule.gap == "shift" and at in left_out:
        return f"{_walls([at], hour)} is left out that day: {_span(hour.size)} later"
    if rule.gap == "next_valid" and at == hour.at and left_out:
        return f"{_walls(left_out, hour)} is left out that day: when the clocks have changed"
    return ""


def _skipped(left_out: list[datetime], hour: Hour) -> str:
    return f"{_walls(left_out, hour)} is left out that day, and skipped." if left_out else ""


def _walls(left_out: list[datetime], hour: Hour) -> str:
    walls = [_wall(at, hour.before) for at in left_out]
    return ", ".join(walls[:SHOWN_WALLS]) + (", …" if len(walls) > SHOWN_WALLS else "")


def _wall(at: datetime, offset: timedelta) -> str:
    return f"{at + offset:%H:%M}"


def _span(size: timedelta) -> str:
    minutes = round(size.total_seconds() / 60)
    return f"{minutes} min" if minutes % 60 else f"{minutes // 60} h"
