"""What a cron line must do, worked out the slow way: by looking at every single minute."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
LAST = -1


@dataclass(frozen=True)
class Part:
    """A field as it is written, and the values that are meant."""

    text: str
    values: frozenset[int]
    last_day: bool = False
    # (1, 2) is the second Monday of a month, (1, LAST) the last.
    nth_weekdays: frozenset[tuple[int, int]] = frozenset()

    @property
    def restricts_days(self) -> bool:
        return self.text not in ("*", "?")


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
        return self._time_matches(wall) and self.day_matches(wall.date())

    def day_matches(self, day: date) -> bool:
        by_day, by_weekday = self._matches_by_day(day), self._matches_by_weekday(day)
        both_restricted = self.day.restricts_days and self.weekday.restricts_days
        either = by_day or by_weekday if both_restricted else by_day and by_weekday
        return either and day.month in self.month.values

    def minutes_of(self, day: date) -> Iterator[datetime]:
        """Every minute of a day that matches."""
        minute = midnight = datetime(day.year, day.month, day.day)
        while minute < midnight + DAY:
            if self._time_matches(minute):
                yield minute
            minute += MINUTE

    def _time_matches(self, wall: datetime) -> bool:
        return wall.minute in self.minute.values and wall.hour in self.hour.values

    def _matches_by_day(self, day: date) -> bool:
        is_last = (day + DAY).month != day.month
        return day.day in self.day.values or (self.day.last_day and is_last)

    def _matches_by_weekday(self, day: date) -> bool:
        weekday = day.isoweekday() % 7
        numbers = {(day.day + 6) // 7}
        if (day + 7 * DAY).month != day.month:
            numbers.add(LAST)
        nth = {(weekday, number) for number in numbers}
        return weekday in self.weekday.values or bool(nth & self.weekday.nth_weekdays)


def fires(
    line: Line, start: datetime, end: datetime, zone: ZoneInfo, gap: str, overlap_hour: str
) -> list[datetime]:
    """All fires with start < fire <= end."""
    if line.follows_real_clock:
        found = _on_real_clock(line, start, end, zone)
    else:
        # No change moves a clock by more than a day.
        walls = _walls(line, local(start, zone).date() - DAY, local(end, zone).date() + DAY)
        found = frozenset(fire for wall in walls for fire in resolve(wall, zone, gap, overlap_hour))
    return sorted(fire for fire in found if start < fire <= end)


def local(instant: datetime, zone: ZoneInfo) -> datetime:
    """What a clock on the wall shows."""
    return instant.astimezone(zone).replace(tzinfo=None)


def exists(wall: datetime, zone: ZoneInfo) -> bool:
    return local(wall.replace(tzinfo=zone).astimezone(UTC), zone) == wall


def resolve(wall: datetime, zone: ZoneInfo, gap: str, overlap_hour: str) -> list[datetime]:
    early, late = _readings(wall, zone)
    if early < late:
        return {"first": [early], "second": [late], "both": [early, late]}[overlap_hour]
    if early > late:  # inside a gap Python reads fold=0 with the offset from before it
        return {"shift": [early], "next_valid": [_end_of_gap(wall, zone)], "skip": []}[gap]
    return [early]


def next_change(after: datetime, zone: ZoneInfo, end: datetime) -> datetime | None:
    """The first instant after which the clock shows something else than time passing.

    A change that is undone within three weeks is overlooked."""
    at = after
    offset = at.astimezone(zone).utcoffset()
    for step in (20 * DAY, DAY, HOUR, MINUTE, SECOND):
        while (at + step).astimezone(zone).utcoffset() == offset:
            at += step
            if at > end:
                return None
    return at + SECOND


@lru_cache(maxsize=16384)
def _readings(wall: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    early, late = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return early, late


@lru_cache(maxsize=8192)
def _walls(line: Line, first: date, last: date) -> tuple[datetime, ...]:
    days = (first + number * DAY for number in range((last - first).days + 1))
    return tuple(wall for day in days if line.day_matches(day) for wall in line.minutes_of(day))


@lru_cache(maxsize=8192)
def _on_real_clock(
    line: Line, start: datetime, end: datetime, zone: ZoneInfo
) -> frozenset[datetime]:
    found = set()
    instant = start.replace(microsecond=0)
    while instant <= end:
        wall = local(instant, zone)
        if wall.second == 0 and line.matches(wall):
            found.add(instant)
        instant += _step(line, instant, wall, zone)
    return frozenset(found)


def _step(line: Line, instant: datetime, wall: datetime, zone: ZoneInfo) -> timedelta:
    """To the next whole minute, or over half a day in which nothing at all can match."""
    in_half_a_day = local(instant + DAY / 2, zone)
    undisturbed = in_half_a_day - wall == DAY / 2
    if undisturbed and not any(line.day_matches(at.date()) for at in (wall, in_half_a_day)):
        return DAY / 2
    return timedelta(seconds=60 - wall.second)


def _end_of_gap(wall: datetime, zone: ZoneInfo) -> datetime:
    while not exists(wall, zone):
        wall += MINUTE
    while exists(wall - SECOND, zone):  # Monrovia left out 44 and a half minutes
        wall -= SECOND
    return wall.replace(tzinfo=zone).astimezone(UTC)
