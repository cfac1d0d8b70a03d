"""Readers that join several features for pages, the API and commands.

Belongs here: read-only queries about the fleet, its activity, the cause of a run and the audit.
Does not belong here: changes of any row.
"""

from agents_app.reports.activity import (
    RunGroup,
    group_ended_runs,
    measure_firing_lateness,
    read_latest_triggers,
)
from agents_app.reports.audit import AuditEntry, AuditPeriod, read_audit
from agents_app.reports.fleet import (
    agent_note,
    agent_state,
    in_project,
    last_run,
    oldest_queued_reason,
    read_fleet,
    read_queued_reasons,
    read_workers,
)
from agents_app.reports.provenance import Cause, read_cause_tree
from agents_app.reports.statistics import (
    DayStatistics,
    EndedRun,
    Summary,
    summarize_days,
    summarize_runs,
)

__all__ = [
    "AuditEntry",
    "AuditPeriod",
    "Cause",
    "DayStatistics",
    "EndedRun",
    "RunGroup",
    "Summary",
    "agent_note",
    "agent_state",
    "group_ended_runs",
    "in_project",
    "last_run",
    "measure_firing_lateness",
    "oldest_queued_reason",
    "read_audit",
    "read_cause_tree",
    "read_fleet",
    "read_latest_triggers",
    "read_queued_reasons",
    "read_workers",
    "summarize_days",
    "summarize_runs",
]
