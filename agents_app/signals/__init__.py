"""What a running agent tells Drover: results, calls, locks, messages, schedule lines.

Belongs here: handlers of signals and the rows they change.
Does not belong here: HTTP (gateway_app.signals).
"""

from agents_app.signals import calls, handlers, locks, messages
from agents_app.signals.calls import Branch, call_tree, lineage
from agents_app.signals.files import keep_signals, take_signal_files
from agents_app.signals.locks import held_locks
from agents_app.signals.replies import Reply
from agents_app.signals.schedule_line_watcher import ScheduleLineWatcher

__all__ = [
    "Branch",
    "Reply",
    "ScheduleLineWatcher",
    "call_tree",
    "calls",
    "handlers",
    "held_locks",
    "keep_signals",
    "lineage",
    "locks",
    "messages",
    "take_signal_files",
]
