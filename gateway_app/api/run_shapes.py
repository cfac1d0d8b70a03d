"""Runs, work items and trees of calls as JSON; shared by several resources."""

from typing import Any, Literal, cast

from pydantic import Field

from agents_app.models import Run, WorkItem
from agents_app.runners import NONE, OFF, missing_promises
from agents_app.runs import why_waiting
from agents_app.signals import Branch
from gateway_app.api.fields import Epoch, Shape, epoch, epoch_or_none

RunState = Literal[
    "pending", "running", "succeeded", "failed", "timed_out", "stopped", "lost", "dead"
]
WorkState = Literal["queued", "admitted", "done", "failed", "dropped", "cleared"]
TriggerName = Literal["schedule", "webhook", "call", "message", "rule", "manual"]


class RunSandboxShape(Shape):
    confined: bool | None = Field(
        description="Whether the program ran in a sandbox; null: not known yet, or a container."
    )
    missing: list[str] = Field(description="Promises of the sandbox that did not hold.")


class RunShape(Shape):
    """`status`, `task_id` and `completed_at` repeat other fields for the clients of Arbiter."""

    id: int
    agent: str
    state: RunState
    status: RunState
    trigger: TriggerName
    requested_by: str
    schedule_id: int | None
    task_id: int | None
    work_item_id: int
    parent_run_id: int | None
    attempt: int
    rerun: int
    depth: int
    worker: str | None
    pid: int | None
    sandbox: RunSandboxShape
    created_at: Epoch
    started_at: Epoch | None
    finished_at: Epoch | None
    completed_at: Epoch | None
    deadline_at: Epoch | None
    stop_requested_at: Epoch | None
    duration_seconds: float | None
    exit_code: int | None
    error: str
    status_text: str
    result_summary: str
    metadata: dict[str, Any] = Field(description="What the run has left for its hooks.")
    tokens_in: int
    tokens_out: int
    tokens_cache: int
    cost_usd: float
    trace_id: str
    output_bytes: int
    output_cut_bytes: int


_SAME = (
    *("id", "state", "trigger", "requested_by", "schedule_id", "work_item_id", "parent_run_id"),
    *("attempt", "rerun", "depth", "pid", "exit_code", "error", "status_text", "result_summary"),
    *("tokens_in", "tokens_out", "tokens_cache", "trace_id", "output_bytes", "output_cut_bytes"),
)
_TIMES = ("started_at", "finished_at", "deadline_at", "stop_requested_at")


def run_shape(run: Run) -> RunShape:
    """Select the agent and the worker with the run, or each costs a query."""
    values: dict[str, Any] = {name: getattr(run, name) for name in _SAME}
    values |= {name: epoch_or_none(getattr(run, name)) for name in _TIMES}
    return RunShape(
        **values,
        agent=run.agent.name,
        worker=run.worker.name if run.worker else None,
        created_at=epoch(run.created_at),
        duration_seconds=_duration(run),
        cost_usd=float(run.cost_usd),
        status=values["state"],
        task_id=run.schedule_id,
        completed_at=values["finished_at"],
        sandbox=_sandbox(run.sandbox),
        metadata=run.metadata,
    )


def _sandbox(stored: str) -> RunSandboxShape:
    confined = stored not in (OFF, NONE) if stored else None
    return RunSandboxShape(confined=confined, missing=list(missing_promises(stored)))


def _duration(run: Run) -> float | None:
    if run.started_at is None or run.finished_at is None:
        return None
    return round((run.finished_at - run.started_at).total_seconds(), 3)


# --- work -----------------------------------------------------------------------------------


class WorkShape(Shape):
    id: int
    agent: str
    state: WorkState
    reason: str
    trigger: TriggerName
    requested_by: str
    schedule_id: int | None
    prompt: str
    attempts: int
    trace_id: str
    created_at: Epoch
    available_at: Epoch = Field(description="The work item does not start before this time.")
    finished_at: Epoch | None


def work_shape(item: WorkItem) -> WorkShape:
    same = ("id", "state", "reason", "trigger", "requested_by", "schedule_id", "prompt")
    return WorkShape(
        **{name: getattr(item, name) for name in (*same, "attempts", "trace_id")},
        agent=item.agent.name,
        created_at=epoch(item.created_at),
        available_at=epoch(item.available_at),
        finished_at=epoch_or_none(item.finished_at),
    )


class AcceptedWorkShape(Shape):
    """Accepted work: `run_id` is null while it waits for a slot."""

    work_item_id: int
    run_id: int | None
    agent: str
    state: WorkState
    waits_because: str | None = Field(description="Why queued work does not start yet.")
    trace_id: str
    repeated: bool = Field(description="The Idempotency-Key was used before: nothing was done.")


def accepted_work(item: WorkItem, *, repeated: bool = False) -> AcceptedWorkShape:
    run = item.runs.order_by("-pk").first()
    return AcceptedWorkShape(
        work_item_id=item.pk,
        run_id=run.pk if run else None,
        agent=item.agent.name,
        state=cast("WorkState", item.state),
        waits_because=why_waiting(item) if item.state == WorkItem.State.QUEUED else None,
        trace_id=item.trace_id,
        repeated=repeated,
    )


# --- calls ----------------------------------------------------------------------------------


class CallShape(Shape):
    """A run, or a work item without a run, with all its calls."""

    agent: str
    run_id: int | None
    state: str = Field(description="The state of the run; queued: there is no run yet.")
    call_id: int | None = Field(description="null: the root of the tree.")
    status: str = Field(description="The status of the call: pending, running, completed or error.")
    error: str
    calls: "list[CallShape]"


def call_shape(branch: Branch) -> CallShape:
    same = ("agent", "run_id", "state", "call_id", "status", "error")
    return CallShape(
        **{name: getattr(branch, name) for name in same},
        calls=[call_shape(each) for each in branch.calls],
    )
