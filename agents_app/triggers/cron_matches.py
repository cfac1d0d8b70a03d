"""Finds the matches of a CronTrigger on a wall clock without time zone."""

import threading
from bisect import bisect_left
from functools import lru_cache

from croniter import croniter

from agents_app.triggers.cron import CronTrigger

_DAY = 86400
# The dates of four years.
_MAX_CACHED = 1500


def next_wall_match(trigger: CronTrigger, wall_seconds: int) -> int | None:
    """The first match strictly after `wall_seconds`, in seconds of a clock without zone."""
    # Matches fall on whole minutes.
    minute = (wall_seconds // 60 + 1) * 60
    matches = [_first_match(branch, minute) for branch in trigger.branches]
    return min((match for match in matches if match is not None), default=None)


def _first_match(branch: str, minute: int) -> int | None:
    """The first matching date with its first matching time, at that minute or later.

    Dates and times are searched separately: croniter is slow, and its dates can be cached.
    """
    times, dates = _finders(branch)
    midnight = minute - minute % _DAY
    date = dates.at_or_after(midnight)
    if date == midnight:
        time = times.at_or_after(minute - midnight)
        if time is not None:
            return midnight + time
        date = dates.at_or_after(midnight + _DAY)
    first_time = times.at_or_after(0)
    return date + first_time if date is not None and first_time is not None else None


@lru_cache(maxsize=4096)
def _finders(branch: str) -> tuple["_TimeFinder", "_DateFinder"]:
    minute, hour, dates = branch.split(" ", 2)
    return _TimeFinder(minute, hour), _date_finder(dates)


@lru_cache(maxsize=4096)
def _date_finder(dates: str) -> "_DateFinder":
    return _DateFinder(f"0 0 {dates}")


class _TimeFinder:
    """Finds times of a day, in seconds since midnight."""

    def __init__(self, minutes: str, hours: str) -> None:
        self._minutes = _values(minutes, 60)
        self._hours = _values(hours, 24)

    def at_or_after(self, seconds: int) -> int | None:
        """The first time from a whole minute of the day on; None if the day has no more."""
        hour, minute = divmod(seconds // 60, 60)
        at = bisect_left(self._hours, hour)
        if at < len(self._hours) and self._hours[at] == hour:
            later = bisect_left(self._minutes, minute)
            if later < len(self._minutes):
                return (hour * 60 + self._minutes[later]) * 60
            at += 1
        return (self._hours[at] * 60 + self._minutes[0]) * 60 if at < len(self._hours) else None


def _values(listed: str, count: int) -> list[int]:
    """The values of a field of a branch, in ascending order."""
    return list(range(count)) if listed == "*" else [int(value) for value in listed.split(",")]


class _DateFinder:
    """A shared croniter and its cached results; a croniter has a position, hence the lock."""

    def __init__(self, expression: str) -> None:
        self._croniter = croniter(expression, 0.0)
        self._found: dict[int, int | None] = {}
        self._lock = threading.Lock()

    def at_or_after(self, seconds: int) -> int | None:
        with self._lock:
            if seconds not in self._found:
                self._remember(seconds, self._find(seconds))
            return self._found[seconds]

    def _remember(self, seconds: int, match: int | None) -> None:
        if len(self._found) >= _MAX_CACHED:
            self._found.clear()
        self._found[seconds] = match
        if match is not None:
            self._found[match] = match

    def _find(self, seconds: int) -> int | None:
        try:
            return int(self._croniter.get_next(float, start_time=seconds - 1.0))
        except (ValueError, OverflowError):  # after the last year of datetime
            return None
