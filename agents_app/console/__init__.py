"""Arguments and output of commands, for a Drover on this machine and for a remote one.

Belongs here: arguments, the values that commands show, and their text, tables and JSON.
Does not belong here: reading rows (cli, reports, schedules) and requests (remote).
"""

from agents_app.console import schedule_screens
from agents_app.console.arguments import (
    add_common,
    add_logs,
    add_rerun,
    add_run,
    add_stat,
    add_stop,
)
from agents_app.console.fleet import (
    AgentStatus,
    Fleet,
    LastRun,
    SchedulerStatus,
    WorkerStatus,
    fleet_parts,
    interval_of,
    watch_fleet,
)
from agents_app.console.logs import (
    ALL_OR_NAMES,
    LabelledLog,
    first_run_text,
    line_as_json,
    line_text,
    log_as_json,
    no_run_text,
)
from agents_app.console.option_values import (
    seconds_of,
    whole_of,
)
from agents_app.console.runs import (
    DRAIN_CONTINUES,
    INTERRUPTED,
    KEEP_QUEUE_REFUSED,
    NO_WORKER,
    TIMED_OUT,
    cleared_text,
    continues_text,
    ending_of,
    exit_code_of,
    stopping_agent_text,
    stopping_run_text,
    timed_out_text,
    wait_seconds,
    waiting_work_text,
    work_as_json,
    work_text,
)
from agents_app.console.schedule_arguments import (
    LONGEST_NOTE,
    MOST_FIRES,
    MOST_SHOWN,
    READ_HELP,
    AnyOrder,
    add_verbs,
    add_why,
    draft_values,
)
from agents_app.console.schedule_values import (
    ENDED_BY_A_RUN,
    Counters,
    Explanation,
    HistoryEntry,
    Obstacle,
    PastExplanation,
    ScheduledWork,
    ShownSchedule,
)
from agents_app.console.schedules import (
    schedule_as_json,
)
from agents_app.console.screen import (
    Screen,
)
from agents_app.console.tables import (
    Part,
    shortened,
)

__all__ = [
    "ALL_OR_NAMES",
    "DRAIN_CONTINUES",
    "ENDED_BY_A_RUN",
    "INTERRUPTED",
    "KEEP_QUEUE_REFUSED",
    "LONGEST_NOTE",
    "MOST_FIRES",
    "MOST_SHOWN",
    "NO_WORKER",
    "READ_HELP",
    "TIMED_OUT",
    "AgentStatus",
    "AnyOrder",
    "Counters",
    "Explanation",
    "Fleet",
    "HistoryEntry",
    "LabelledLog",
    "LastRun",
    "Obstacle",
    "Part",
    "PastExplanation",
    "ScheduledWork",
    "SchedulerStatus",
    "Screen",
    "ShownSchedule",
    "WorkerStatus",
    "add_common",
    "add_logs",
    "add_rerun",
    "add_run",
    "add_stat",
    "add_stop",
    "add_verbs",
    "add_why",
    "cleared_text",
    "continues_text",
    "draft_values",
    "ending_of",
    "exit_code_of",
    "first_run_text",
    "fleet_parts",
    "interval_of",
    "line_as_json",
    "line_text",
    "log_as_json",
    "no_run_text",
    "schedule_as_json",
    "schedule_screens",
    "seconds_of",
    "shortened",
    "stopping_agent_text",
    "stopping_run_text",
    "timed_out_text",
    "wait_seconds",
    "waiting_work_text",
    "watch_fleet",
    "whole_of",
    "work_as_json",
    "work_text",
]
