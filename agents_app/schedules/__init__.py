"""Schedules: what is due, what each firing led to, and what people change.

Belongs here: rows of schedules and firings.
Does not belong here: text to trigger to instant (triggers).
"""

from agents_app.schedules import due, edit, firings
from agents_app.schedules.due import goes_on_at
from agents_app.schedules.edit import Draft
from agents_app.schedules.firings import live_states
from agents_app.schedules.history import (
    HistoryEntry,
    Work,
    as_entries,
    because,
    lateness,
    read_asked_again,
    read_history,
)
from agents_app.schedules.keys import create_once
from agents_app.schedules.plan import LATE, after_pause, arm, fire_after, understand

__all__ = [
    "LATE",
    "Draft",
    "HistoryEntry",
    "Work",
    "after_pause",
    "arm",
    "as_entries",
    "because",
    "create_once",
    "due",
    "edit",
    "fire_after",
    "firings",
    "goes_on_at",
    "lateness",
    "live_states",
    "read_asked_again",
    "read_history",
    "understand",
]
