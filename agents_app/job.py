"""A run on its way through the core, and how it ended: values, no tables."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Job:
    """A run that holds a slot, with what it takes to execute and finish it."""

    run_id: int
    tenant_id: int
    agent_id: int
    work_item_id: int
    schedule_id: int | None
    trigger: str
    attempt: int
    rerun: int
    revision: int
    timeout_seconds: float
    prompt: str
    context: str
    requested_by: str
    trace_id: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended, as its row will say it."""

    state: str
    error: str = ""
    exit_code: int | None = None
    pid: int | None = None
    wants_rerun: bool = False
    output_bytes: int = 0
    output_cut_bytes: int = 0
