"""Describes the effect of the next clock change on the fires of a schedule; pure."""

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

# Limits for fires in the hour of the change: a schedule may fire every minute.
SHOWN_FIRES_IN_HOUR = 4
SHOWN_WALLS = 3
MAX_FIRES_IN_HOUR = 200
MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ClockChange:
    """`text` describes the clock change, `note` the times that are skipped because of it."""

    at: datetime
    text: str
    fires: tuple[Fire, ...]
    note: str = ""

    @property
    def special(self) -> bool:
        """Whether a time is skipped or occurs twice."""
        remarks = [fire.remark for fire in self.fires if fire.remark]
        return bool(self.note) or any(not self.text.startswith(remark) for remark in remarks)


@dataclass(frozen=True, slots=True)
class ClockRule:
    """A trigger with its time zone and its policies for clock changes."""

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
class ChangedHour:
    """The period, usually an hour, that a clock change skips or repeats."""

    at: datetime
    before: timedelta
    after: timedelta

    @classmethod
    def of(cls, change: Change) -> "ChangedHour":
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
        """The start of the period; a repeated one begins before the clocks go back."""
        return self.at if self.forward else self.at - self.size

    @property
    def end(self) -> datetime:
        return self.at + self.size - MOMENT

    @property
    def text(self) -> str:
        way = "forward" if self.forward else "back"
        return f"clocks go {way} {_span(self.size)} at {_wall(self.at, self.before)}"


def fires_around_change(rule: ClockRule, first: datetime, now: datetime) -> ClockChange | None:
    """The last fire before the change, those in its hour, and the first after it.

    `first` is the next fire. None if the clocks do not change within a year, or change before it.
    """
    change = next_clock_change(rule.zone, now)
    if change is None or first > (hour := ChangedHour.of(change)).end:
        return None
    skipped = _skipped_fires(rule, hour) if hour.forward else []
    moments = _moments(rule, first, hour)
    return ClockChange(
        at=hour.at,
        text=f"{hour.text} on {(hour.at + hour.before):%a %d %b %Y}",
        fires=tuple(_remarked(at, rule, hour, skipped, moments) for at in moments),
        note=_skipped_note(skipped, hour) if rule.gap == "skip" else "",
    )


# --- fires ----------------------------------------------------------------------------------


def _moments(rule: ClockRule, first: datetime, hour: ChangedHour) -> list[datetime]:
    """Each fire is computed from the previous one, because an interval counts from it."""
    before = rule.last(first, hour.start - MOMENT) if first < hour.start else None
    found = [before or first]
    found += rule.between(found[-1], hour.end, SHOWN_FIRES_IN_HOUR)
    last = rule.last(found[-1], hour.end) or found[-1]
    after = rule.next(last)
    return [*found, after] if after else found


def _skipped_fires(rule: ClockRule, hour: ChangedHour) -> list[datetime]:
    """The fires of a cron trigger in the skipped hour, as if they were shifted."""
    if not isinstance(rule.trigger, CronTrigger):
        return []
    period = hour.start - MOMENT, hour.end, MAX_FIRES_IN_HOUR
    there = set(replace(rule, gap="skip").between(*period))
    return [at for at in replace(rule, gap="shift").between(*period) if at not in there]


# --- remarks --------------------------------------------------------------------------------


def _remarked(
    at: datetime,
    rule: ClockRule,
    hour: ChangedHour,
    skipped: list[datetime],
    moments: list[datetime],
) -> Fire:
    remarks = []
    if at == next((moment for moment in moments if moment >= hour.at), None):
        remarks.append(hour.text)
    if hour.forward:
        remarks.append(_moved(at, rule, hour, skipped))
    elif hour.start <= at <= hour.end:
        offset, which = (hour.before, "first") if at < hour.at else (hour.after, "second")
        remarks.append(f"{_wall(at, offset)} occurs twice: the {which} time")
    return as_fire(at, rule.zone, "; ".join(filter(None, remarks)))


def _moved(at: datetime, rule: ClockRule, hour: ChangedHour, skipped: list[datetime]) -> str:
    if rule.gap == "shift" and at in skipped:
        return f"{_walls([at], hour)} does not exist that day: {_span(hour.size)} later"
    if rule.gap == "next_valid" and at == hour.at and skipped:
        return f"{_walls(skipped, hour)} does not exist that day: right after the change"
    return ""


def _skipped_note(skipped: list[datetime], hour: ChangedHour) -> str:
    return f"{_walls(skipped, hour)} does not exist that day and is skipped." if skipped else ""


def _walls(skipped: list[datetime], hour: ChangedHour) -> str:
    walls = [_wall(at, hour.before) for at in skipped]
    return ", ".join(walls[:SHOWN_WALLS]) + (", …" if len(walls) > SHOWN_WALLS else "")


def _wall(at: datetime, offset: timedelta) -> str:
    return f"{at + offset:%H:%M}"


def _span(size: timedelta) -> str:
    minutes = round(size.total_seconds() / 60)
    return f"{minutes} min" if minutes % 60 else f"{minutes // 60} h"
