"""The one door to previews: when a schedule will fire, as people read it; pure, no rows."""

from agents_app.next_fires.clock_change import ClockChange, Rule
from agents_app.next_fires.days import Day, Fired, days_from, fires_by_day
from agents_app.next_fires.preview import FROM_THE_END, FROM_THE_START, ONCE, Preview, preview
from agents_app.next_fires.wall_clock import Fire, clock

__all__ = [
    "FROM_THE_END",
    "FROM_THE_START",
    "ONCE",
    "ClockChange",
    "Day",
    "Fire",
    "Fired",
    "Preview",
    "Rule",
    "clock",
    "days_from",
    "fires_by_day",
    "preview",
]
