"""Work items and runs: queued, admitted to a slot, ended; all changes of their states.

Belongs here: the core path between a trigger and a worker.
Does not belong here: executing programs (worker, launch, runners).
"""

from agents_app.runs import control, dispatch, lifecycle, schedule_states, shutdown
from agents_app.runs.block_reasons import (
    AGENT_MISSING,
    SCHEDULE_BLOCKS,
    SKIP_REASON_TEXTS,
    TENANT_DISABLED,
    Block,
    find_blocks,
)
from agents_app.runs.dispatch import Request, enqueue_in_transaction, request_stop
from agents_app.runs.job import TOKEN_PREFIX, Ending, Job, secret_hash
from agents_app.runs.loans import LONGEST_WAIT
from agents_app.runs.readiness import (
    SILENT_BEAT_SECONDS,
    blocked_because,
    missing_processes,
    read_scheduler,
    requeued_because,
    scheduler_state,
    waits_because,
    why_waiting,
)
from agents_app.runs.slots import (
    AgentGate,
    find_free_slots,
    lock_agent,
    lock_agents,
    read_blocked_agents,
)

__all__ = [
    "AGENT_MISSING",
    "LONGEST_WAIT",
    "SCHEDULE_BLOCKS",
    "SILENT_BEAT_SECONDS",
    "SKIP_REASON_TEXTS",
    "TENANT_DISABLED",
    "TOKEN_PREFIX",
    "AgentGate",
    "Block",
    "Ending",
    "Job",
    "Request",
    "blocked_because",
    "control",
    "dispatch",
    "enqueue_in_transaction",
    "find_blocks",
    "find_free_slots",
    "lifecycle",
    "lock_agent",
    "lock_agents",
    "missing_processes",
    "read_blocked_agents",
    "read_scheduler",
    "request_stop",
    "requeued_because",
    "schedule_states",
    "scheduler_state",
    "secret_hash",
    "shutdown",
    "waits_because",
    "why_waiting",
]
