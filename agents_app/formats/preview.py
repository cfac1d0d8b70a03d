"""The next fires of an imported schedule: in the old system, and in Drover."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice

from agents_app.formats.imported import ImportedSchedule, OldFires
from agents_app.triggers import Gap, OverlapHour, When, parse_when, upcoming, zone

FIRES = 3


@dataclass(frozen=True, slots=True)
class FirePreview:
    old: tuple[datetime, ...]
    new: tuple[datetime, ...]

    @property
    def is_same(self) -> bool:
        return self.old == self.new


def preview_fires(
    schedule: ImportedSchedule, now: datetime, host_zone: str, count: int = FIRES
) -> FirePreview:
    """The fires after `now`, computed by the rules of each system."""
    old = _old_fires(schedule.old_fires, now, count)
    return FirePreview(old, new_fires(schedule, now, host_zone, count))


# Thousands of lines of a crontab often have the same times.
@lru_cache(maxsize=1024)
def _old_fires(fires: OldFires, now: datetime, count: int) -> tuple[datetime, ...]:
    return tuple(islice(fires(now), count))


def new_fires(
    schedule: ImportedSchedule, now: datetime, host_zone: str, count: int
) -> tuple[datetime, ...]:
    if not schedule.expression or schedule.settings.get("enabled") is False:
        return ()
    area = schedule.timezone or host_zone
    return _fires(schedule.expression, area, now, count, policies(schedule))


@lru_cache(maxsize=1024)
def _fires(
    expression: str, area: str, now: datetime, count: int, policies: tuple[Gap, OverlapHour]
) -> tuple[datetime, ...]:
    when = parse_when(expression, now, zone(area), allow_past=True)
    fires = upcoming(when.trigger, now, when.zone, count, *policies)
    return tuple(fire.astimezone(UTC) for fire in fires)


def parsed(schedule: ImportedSchedule, now: datetime, host_zone: str) -> When:
    area = zone(schedule.timezone or host_zone)
    return parse_when(schedule.expression, now, area, allow_past=True)


def policies(schedule: ImportedSchedule) -> tuple[Gap, OverlapHour]:
    """What the schedule does when the clocks change."""
    settings = schedule.settings
    return settings.get("gap", "shift"), settings.get("overlap_hour", "first")
