"""Computes the fires of a trigger: the next one, the next few, and those of a period."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from agents_app.triggers.boot import BootTrigger
from agents_app.triggers.cron import CronTrigger
from agents_app.triggers.cron_matches import next_wall_match
from agents_app.triggers.dst import GAPS, OVERLAP_HOURS, Gap, OverlapHour, next_instant
from agents_app.triggers.interval import IntervalTrigger
from agents_app.triggers.once import OnceTrigger
from agents_app.triggers.untimed import UntimedTrigger

# Triggers whose fires depend on other events than the clock.
Clockless = UntimedTrigger | BootTrigger
Trigger = CronTrigger | IntervalTrigger | OnceTrigger | Clockless

_SECOND = timedelta(seconds=1)


def next_fire(
    trigger: Trigger,
    after: datetime,
    zone: ZoneInfo,
    gap: Gap = "shift",
    overlap_hour: OverlapHour = "first",
) -> datetime | None:
    """The first fire strictly after `after`, in UTC; None if there is none."""
    if after.utcoffset() is None:
        raise ValueError("next_fire needs a time with a zone")
    if isinstance(trigger, IntervalTrigger):
        return _next_interval_fire(trigger, after)
    if isinstance(trigger, OnceTrigger):
        return trigger.at if trigger.at > after else None
    if isinstance(trigger, Clockless):
        return None
    # Fires are at whole seconds: a fraction has no effect and would make the cache useless.
    return _next_cron_fire(trigger, math.floor(after.timestamp()), zone, gap, overlap_hour)


def upcoming(
    trigger: Trigger,
    after: datetime,
    zone: ZoneInfo,
    count: int,
    gap: Gap = "shift",
    overlap_hour: OverlapHour = "first",
) -> list[datetime]:
    return list(islice(_fires(trigger, after, zone, gap, overlap_hour), count))


def fires_between(
    trigger: Trigger,
    start_exclusive: datetime,
    end_inclusive: datetime,
    zone: ZoneInfo,
    limit: int,
    gap: Gap = "shift",
    overlap_hour: OverlapHour = "first",
) -> list[datetime]:
    """The earliest `limit` fires of a period, oldest first."""
    fires = _fires(trigger, start_exclusive, zone, gap, overlap_hour)
    return list(islice(takewhile(lambda fire: fire <= end_inclusive, fires), limit))


def last_fire_between(
    trigger: Trigger,
    start_exclusive: datetime,
    end_inclusive: datetime,
    zone: ZoneInfo,
    gap: Gap = "shift",
    overlap_hour: OverlapHour = "first",
) -> datetime | None:
    """The latest fire of a period, found without computing all others."""
    if isinstance(trigger, OnceTrigger):
        return trigger.at if start_exclusive < trigger.at <= end_inclusive else None
    if isinstance(trigger, Clockless):
        return None
    if isinstance(trigger, IntervalTrigger):
        count = (end_inclusive - start_exclusive) // trigger.every
        return (start_exclusive + count * trigger.every).astimezone(UTC) if count > 0 else None
    low, high = start_exclusive, end_inclusive
    while high - low >= _SECOND:
        middle = low + (high - low) / 2
        fire = next_fire(trigger, middle, zone, gap, overlap_hour)
        if fire is not None and fire <= end_inclusive:
            low = fire
        else:
            high = middle
    fire = next_fire(trigger, low, zone, gap, overlap_hour)
    if fire is not None and fire <= end_inclusive:
        return fire
    return low if low > start_exclusive else None


def _fires(
    trigger: Trigger, after: datetime, zone: ZoneInfo, gap: Gap, overlap_hour: OverlapHour
) -> Iterator[datetime]:
    fire = next_fire(trigger, after, zone, gap, overlap_hour)
    while fire is not None:
        yield fire
        fire = next_fire(trigger, fire, zone, gap, overlap_hour)


def _next_interval_fire(trigger: IntervalTrigger, after: datetime) -> datetime | None:
    try:
        return after.astimezone(UTC) + trigger.every
    except OverflowError:
        return None


@lru_cache(maxsize=16384)
def _next_cron_fire(
    trigger: CronTrigger, after: int, zone: ZoneInfo, gap: Gap, overlap_hour: OverlapHour
) -> datetime | None:
    """Cached because thousands of schedules share an expression and come due together."""
    if gap not in GAPS or overlap_hour not in OVERLAP_HOURS:
        raise ValueError(f"unknown policy: gap {gap!r}, overlap hour {overlap_hour!r}")
    if trigger.follows_real_clock:
        gap, overlap_hour = "skip", "both"
    fire = next_instant(partial(next_wall_match, trigger), after, zone, gap, overlap_hour)
    return None if fire is None else datetime.fromtimestamp(fire, UTC)
