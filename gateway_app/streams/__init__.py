"""Live streams (Server-Sent Events): notifications and the output of runs.

Belongs here: open connections and the events that they receive.
Does not belong here: reading rows (agents_app.output, agents_app.events).
"""

from gateway_app.streams.hub import Hub
from gateway_app.streams.journal_filter import COMPLETED, FAILED, STARTED, JournalFilter
from gateway_app.streams.middleware import Streams
from gateway_app.streams.requests import (
    NotificationRequest,
    OutputRequest,
    start_stream,
    subscriber_of,
)

__all__ = [
    "COMPLETED",
    "FAILED",
    "STARTED",
    "Hub",
    "JournalFilter",
    "NotificationRequest",
    "OutputRequest",
    "Streams",
    "start_stream",
    "subscriber_of",
]
