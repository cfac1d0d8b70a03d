"""Work items and runs: queued, admitted to a slot, ended; every change of state.

Belongs here: the core path between a trigger and a worker.
Does not belong here: executing programs (worker, launch, runners).
"""

from agents_app.runs import control, dispatch, lifecycle, schedule_states, shutdown
from agents_app.runs.dispatch import TAKES_NO_WORK, Request, enqueue_here, request_stop
from agents_app.runs.job import TOKEN_PREFIX, Ending, Job, secret_hash
from agents_app.runs.loans import LONGEST_WAIT
from agents_app.runs.readiness import SILENT_BEAT_SECONDS, missing_processes
from agents_app.runs.schedule_states import AGENT_MISSING, TENANT_DISABLED
from agents_app.runs.slots import AgentGate, find_free_slots, lock_agent, lock_agents

__all__ = [
    "AGENT_MISSING",
    "LONGEST_WAIT",
    "SILENT_BEAT_SECONDS",
    "TAKES_NO_WORK",
    "TENANT_DISABLED",
    "TOKEN_PREFIX",
    "AgentGate",
    "Ending",
    "Job",
    "Request",
    "control",
    "dispatch",
    "enqueue_here",
    "find_free_slots",
    "lifecycle",
    "lock_agent",
    "lock_agents",
    "missing_processes",
    "request_stop",
    "schedule_states",
    "secret_hash",
    "shutdown",
]
