"""Input and output of the management commands.

Belongs here: arguments, lookup of rows, tables and JSON.
Does not belong here: decisions about agents or runs.
"""

from agents_app.cli import rules, schedule_screens
from agents_app.cli.command import DroverCommand
from agents_app.cli.completion import SHELLS, script
from agents_app.cli.deliveries import (
    LONGEST_BODY,
    decision_rows,
    delivery_as_json,
    delivery_in_full,
)
from agents_app.cli.enqueue import EnqueueCommand, ending_of
from agents_app.cli.labelled_logs import LabelledLog, RunFollower, RunLogLine, merged_lines
from agents_app.cli.lookup import (
    did_you_mean,
    find_agent,
    find_delivery,
    find_lock,
    find_run,
    find_run_or_agent,
    find_schedule,
    find_schedules,
    find_tenant,
    find_work_item,
)
from agents_app.cli.option_values import seconds_of, whole_of
from agents_app.cli.passphrase import add_passphrase_argument, read_passphrase
from agents_app.cli.questions import ask
from agents_app.cli.schedule_arguments import (
    NAME_HELP,
    READ_HELP,
    AnyOrder,
    add_all,
    add_create,
    add_list,
    draft_of,
)
from agents_app.cli.schedule_values import schedule_as_json, with_distance
from agents_app.cli.secret_input import read_values
from agents_app.cli.tables import Part, cell, grid, shortened

__all__ = [
    "LONGEST_BODY",
    "NAME_HELP",
    "READ_HELP",
    "SHELLS",
    "AnyOrder",
    "DroverCommand",
    "EnqueueCommand",
    "LabelledLog",
    "Part",
    "RunFollower",
    "RunLogLine",
    "add_all",
    "add_create",
    "add_list",
    "add_passphrase_argument",
    "ask",
    "cell",
    "decision_rows",
    "delivery_as_json",
    "delivery_in_full",
    "did_you_mean",
    "draft_of",
    "ending_of",
    "find_agent",
    "find_delivery",
    "find_lock",
    "find_run",
    "find_run_or_agent",
    "find_schedule",
    "find_schedules",
    "find_tenant",
    "find_work_item",
    "grid",
    "merged_lines",
    "read_passphrase",
    "read_values",
    "rules",
    "schedule_as_json",
    "schedule_screens",
    "script",
    "seconds_of",
    "shortened",
    "whole_of",
    "with_distance",
]
