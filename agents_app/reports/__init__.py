"""Readers that join several features for pages, the API and commands.

Belongs here: read-only queries about the fleet, its activity and the cause of a run.
Does not belong here: changes of any row.
"""

from agents_app.reports.activity import Pile, ended_runs, firing_lateness, latest_triggers
from agents_app.reports.fleet import (
    AgentStatus,
    Fleet,
    LastRun,
    SchedulerStatus,
    last_run,
    note_of,
    read_fleet,
    state_of,
)
from agents_app.reports.provenance import Cause, cause_tree
from agents_app.reports.statistics import DayStatistics, Ended, Summary, by_day, summed_up

__all__ = [
    "AgentStatus",
    "Cause",
    "DayStatistics",
    "Ended",
    "Fleet",
    "LastRun",
    "Pile",
    "SchedulerStatus",
    "Summary",
    "by_day",
    "cause_tree",
    "ended_runs",
    "firing_lateness",
    "last_run",
    "latest_triggers",
    "note_of",
    "read_fleet",
    "state_of",
    "summed_up",
]
