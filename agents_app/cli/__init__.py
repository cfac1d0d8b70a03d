"""Input and output of the management commands.

Belongs here: arguments, lookup of rows, tables and JSON.
Does not belong here: decisions about agents or runs.
"""

from agents_app.cli import rules
from agents_app.cli.any_order import AnyOrderParser
from agents_app.cli.command import DroverCommand
from agents_app.cli.completion import SHELLS, script
from agents_app.cli.deliveries import (
    LONGEST_BODY,
    decision_rows,
    delivery_as_json,
    delivery_in_full,
)
from agents_app.cli.enqueue import EnqueueCommand
from agents_app.cli.followed_runs import RunFollower, RunLogLine, merged_lines
from agents_app.cli.lookup import (
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
from agents_app.cli.passphrase import add_passphrase_argument, read_passphrase
from agents_app.cli.questions import ask
from agents_app.cli.secret_input import read_values

__all__ = [
    "LONGEST_BODY",
    "SHELLS",
    "AnyOrderParser",
    "DroverCommand",
    "EnqueueCommand",
    "RunFollower",
    "RunLogLine",
    "add_passphrase_argument",
    "ask",
    "decision_rows",
    "delivery_as_json",
    "delivery_in_full",
    "find_agent",
    "find_delivery",
    "find_lock",
    "find_run",
    "find_run_or_agent",
    "find_schedule",
    "find_schedules",
    "find_tenant",
    "find_work_item",
    "merged_lines",
    "read_passphrase",
    "read_values",
    "rules",
    "script",
]
