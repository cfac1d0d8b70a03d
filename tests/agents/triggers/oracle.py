"""What a cron line must do, worked out the slow way: by looking at every single minute."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Part:
    """A field as it is written, and the values that are meant."""

    text: str
    values: frozenset[int]


@dataclass(frozen=True)
class Line:
    minute: Part
    hour: Part
    day: Part
    month: Part
    weekday: Part

    @property
    def text(self) -> str:
        parts = (self.minute, self.hour, self.day, self.month, self.weekday)
        return " ".join(part.text for part in parts)

    @property
    def follows_real_clock(self) -> bool:
        return self.minute.text.startswith("*") or self.hour.text.startswith("*")

    def matches(self, wall: datetime) -> bool:
        return (
            wall.minute in self.minute.values
            and wall.hour in self.hour.values
            and wall.month in self.month.values
            and self._day_matches(wall)
        )

    def _day_matches(self, wall: datetime) -> bool:
        by_day = wall.day in self.day.values
        by_weekday = wall.isoweekday() % 7 in self.weekday.values
        both_restricted = self.day.text != "*" and self.weekday.text != "*"
        return by_day or by_weekday if both_restricted else by_day and by_weekday


def fires(
    line: Line, start: datetime, end: datetime, zone: ZoneInfo, gap: str, overlap_hour: str
) -> list[datetime]:
    """All fires with start < fire <= end."""
    find = _on_real_clock if line.follows_real_clock else _on_wall_clock(gap, overlap_hour)
    return sorted({fire for fire in find(line, start, end, zone) if start < fire <= end})


def _minutes(start: datetime, end: datetime) -> Iterator[datetime]:
    minute = start.replace(second=0, microsecond=0)
    while minute <= end:
        yield minute
        minute += MINUTE


def _on_real_clock(
    line: Line, start: datetime, end: datetime, zone: ZoneInfo
) -> Iterator[datetime]:
    return (
        instant
        for instant in _minutes(start, end)
        if line.matches(instant.astimezone(zone).replace(tzinfo=None))
    )


def _on_wall_clock(
    gap: str, overlap_hour: str
) -> Callable[[Line, datetime, datetime, ZoneInfo], Iterator[datetime]]:
    def find(line: Line, start: datetime, end: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        first = start.astimezone(zone).replace(tzinfo=None) - DAY
        last = end.astimezone(zone).replace(tzinfo=None) + DAY
        for wall in _minutes(first, last):
            if line.matches(wall):
                yield from resolve(wall, zone, gap, overlap_hour)

    return find


def resolve(wall: datetime, zone: ZoneInfo, gap: str, overlap_hour: str) -> list[datetime]:
    early = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    late = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    if early < late:
        return {"first": [early], "second": [late], "both": [early, late]}[overlap_hour]
    if early > late:  # inside a gap Python reads fold=0 with the offset from before it
        return {"shift": [early], "next_valid": [_first_valid(wall, zone)], "skip": []}[gap]
    return [early]


def _first_valid(wall: datetime, zone: ZoneInfo) -> datetime:
    while True:
        wall += MINUTE
        instant = wall.replace(tzinfo=zone).astimezone(UTC)
        if instant.astimezone(zone).replace(tzinfo=None) == wall:
            return instant
