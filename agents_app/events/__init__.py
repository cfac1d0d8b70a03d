"""What happened: the journal, hints to Redis, totals for metrics and trace ids.

Belongs here: writing and reading events in order.
Does not belong here: decisions about runs.
"""

from agents_app.events import journal, relay
from agents_app.events.tail import (
    MAX_TAIL_ENTRIES,
    Tail,
    TailEntry,
    entries_between,
    newest_entry_id,
)
from agents_app.events.totals import Key, add_to_totals, buckets, observe, read_totals, sum_key
from agents_app.events.trace import trace_id_of

__all__ = [
    "MAX_TAIL_ENTRIES",
    "Key",
    "Tail",
    "TailEntry",
    "add_to_totals",
    "buckets",
    "entries_between",
    "journal",
    "newest_entry_id",
    "observe",
    "read_totals",
    "relay",
    "sum_key",
    "trace_id_of",
]
