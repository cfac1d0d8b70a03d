"""A worker process: its lease, the runs it executes, the containers it adopts.

Belongs here: the steps between the start and the end of a run.
Does not belong here: state changes (runs.lifecycle).
"""

from agents_app.worker import execute
from agents_app.worker.adoption import Adopter
from agents_app.worker.consumer_watch import ConsumerWatch
from agents_app.worker.execute import Host, Performer, remove_leftover_workdirs
from agents_app.worker.lease import (
    Lease,
    boot_id,
    booted_at,
    current_host,
    is_alive,
    process_started,
    take_lease,
    this_host,
    utc_now,
)

__all__ = [
    "Adopter",
    "ConsumerWatch",
    "Host",
    "Lease",
    "Performer",
    "boot_id",
    "booted_at",
    "current_host",
    "execute",
    "is_alive",
    "process_started",
    "remove_leftover_workdirs",
    "take_lease",
    "this_host",
    "utc_now",
]
