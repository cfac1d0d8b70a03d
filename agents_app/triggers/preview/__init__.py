"""Previews of schedules for pages and the command line.

Belongs here: previews of the next fires and of clock changes.
Does not belong here: rows of schedules (schedules).
"""

from agents_app.triggers.preview.clock_change import ClockChange, ClockRule
from agents_app.triggers.preview.days import DayPeriod, FiresOfDay, days_from, fires_by_day
from agents_app.triggers.preview.preview import (
    FROM_THE_END,
    FROM_THE_START,
    ONCE,
    Preview,
    preview_fires,
)
from agents_app.triggers.preview.wall_clock import Fire, clock

__all__ = [
    "FROM_THE_END",
    "FROM_THE_START",
    "ONCE",
    "ClockChange",
    "ClockRule",
    "DayPeriod",
    "Fire",
    "FiresOfDay",
    "Preview",
    "clock",
    "days_from",
    "fires_by_day",
    "preview_fires",
]
