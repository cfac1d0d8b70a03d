"""Schedules: due times, firings and their outcomes, and changes that users make.

Belongs here: rows of schedules and firings.
Does not belong here: text to trigger to instant (triggers).
"""

from agents_app.schedules import due, edit, firings
from agents_app.schedules.due import next_fire_after_pause
from agents_app.schedules.edit import Draft
from agents_app.schedules.firings import read_live_states
from agents_app.schedules.history import (
    explain_outcome,
    read_entries,
    read_firings,
    read_history,
    read_retried_work,
)
from agents_app.schedules.keys import create_once
from agents_app.schedules.plan import (
    fire_after,
    fire_after_pause,
    parse_schedule_text,
    set_next_fire,
)
from agents_app.schedules.shown import disabled_because, preview_of, shown_schedule

__all__ = [
    "Draft",
    "create_once",
    "disabled_because",
    "due",
    "edit",
    "explain_outcome",
    "fire_after",
    "fire_after_pause",
    "firings",
    "next_fire_after_pause",
    "parse_schedule_text",
    "preview_of",
    "read_entries",
    "read_firings",
    "read_history",
    "read_live_states",
    "read_retried_work",
    "set_next_fire",
    "shown_schedule",
]
