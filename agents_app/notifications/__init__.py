"""Notifications about runs and rules to HTTP endpoints.

Belongs here: targets, payloads, signatures and delivery.
Does not belong here: webhooks that arrive (webhooks).
"""

from agents_app.notifications.outgoing import (
    Blocked,
    OutgoingReply,
    OutgoingRequest,
    Unreachable,
    read_target,
    send_and_wait,
)
from agents_app.notifications.payloads import EVENTS, FAILURES, Format
from agents_app.notifications.send import notify
from agents_app.notifications.targets import announce, target_label

__all__ = [
    "EVENTS",
    "FAILURES",
    "Blocked",
    "Format",
    "OutgoingReply",
    "OutgoingRequest",
    "Unreachable",
    "announce",
    "notify",
    "read_target",
    "send_and_wait",
    "target_label",
]
