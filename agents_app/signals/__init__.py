"""Signals: what a running agent reports to Drover and asks of it.

Belongs here: the declaration of each signal, its handler, and the rows it changes.
Does not belong here: HTTP (gateway_app.signals).
"""

from agents_app.signals import calls, locks, messages
from agents_app.signals.calls import Branch, call_tree, lineage
from agents_app.signals.contract import SMALL_BODY_BYTES, Reply, Signal
from agents_app.signals.declarations import SIGNALS
from agents_app.signals.fields import SignalField
from agents_app.signals.files import signal_columns, store_signals, take_signal_files
from agents_app.signals.handlers import MAX_METADATA_BYTES
from agents_app.signals.locks import held_locks
from agents_app.signals.receive import (
    Unauthorized,
    authenticate_run,
    cancel_wait,
    handle_signal,
)
from agents_app.signals.reference import signal_reference
from agents_app.signals.schedule_lines import ScheduleLineWatcher
from agents_app.signals.shell_command import write_command

__all__ = [
    "MAX_METADATA_BYTES",
    "SIGNALS",
    "SMALL_BODY_BYTES",
    "Branch",
    "Reply",
    "ScheduleLineWatcher",
    "Signal",
    "SignalField",
    "Unauthorized",
    "authenticate_run",
    "call_tree",
    "calls",
    "cancel_wait",
    "handle_signal",
    "held_locks",
    "lineage",
    "locks",
    "messages",
    "signal_columns",
    "signal_reference",
    "store_signals",
    "take_signal_files",
    "write_command",
]
