"""Live streams (Server-Sent Events): notifications and the output of runs.

Belongs here: open connections and what each is sent.
Does not belong here: reading rows (agents_app.output, agents_app.events).
"""

from gateway_app.streams.door import Streams
from gateway_app.streams.hub import Hub
from gateway_app.streams.log_lines import NumberedLine, as_lines
from gateway_app.streams.notices import COMPLETED, FAILED, STARTED, Wanted
from gateway_app.streams.ticket import Follow, Listen, begin, subscriber_of

__all__ = [
    "COMPLETED",
    "FAILED",
    "STARTED",
    "Follow",
    "Hub",
    "Listen",
    "NumberedLine",
    "Streams",
    "Wanted",
    "as_lines",
    "begin",
    "subscriber_of",
]
