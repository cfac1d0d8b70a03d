"""Schedules: due times, firings and their outcomes, and changes that users make.

Belongs here: rows of schedules and firings.
Does not belong here: text to trigger to instant (triggers).
"""

from agents_app.schedules import due, edit, firings
from agents_app.schedules.due import next_fire_after_pause
from agents_app.schedules.edit import Draft
from agents_app.schedules.firings import read_live_states
from agents_app.schedules.history import (
    HistoryEntry,
    Work,
    explain_outcome,
    format_lateness,
    read_entries,
    read_firings,
    read_history,
    read_retried_work,
)
from agents_app.schedules.keys import create_once
from agents_app.schedules.plan import (
    LATE,
    fire_after,
    fire_after_pause,
    parse_schedule_text,
    set_next_fire,
)

__all__ = [
    "LATE",
    "Draft",
    "HistoryEntry",
    "Work",
    "create_once",
    "due",
    "edit",
    "explain_outcome",
    "fire_after",
    "fire_after_pause",
    "firings",
    "format_lateness",
    "next_fire_after_pause",
    "parse_schedule_text",
    "read_entries",
    "read_firings",
    "read_history",
    "read_live_states",
    "read_retried_work",
    "set_next_fire",
]
