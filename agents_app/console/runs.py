"""Work and runs as the commands print them: JSON, sentences, and exit codes; pure."""

import math

from agents_app.console.fleet import LastRun
from agents_app.console.option_values import seconds_of
from agents_app.errors import Refused
from agents_app.names import program_name

TIMED_OUT = 124
INTERRUPTED = 130


def wait_seconds(*, wait: bool, timeout: str) -> float:
    """How long to wait; called before work is enqueued, because it refuses wrong options."""
    if timeout and not wait:
        raise Refused("--timeout is how long --wait waits: add --wait, or omit --timeout")
    return seconds_of(timeout, "--timeout") if timeout else math.inf


def work_as_json(
    *,
    work_item_id: int,
    agent: str,
    state: str,
    trace_id: str,
    waits_because: str | None,
    run: LastRun | None,
) -> dict[str, object]:
    run_id = run.id if run else None
    return {
        # The names of the API, and those of version 0.1.0, which scripts read.
        "work_item_id": work_item_id,
        "run_id": run_id,
        "work_item": work_item_id,
        "run": run_id,
        "trace_id": trace_id,
        "state": state,
        "agent": agent,
        "last_run": run,
        "waits_because": waits_because,
    }


def work_text(work_item_id: int, agent: str, run_id: int | None, waits_because: str | None) -> str:
    if run_id is not None:
        return f"work item {work_item_id}: run {run_id} of {agent}"
    return f"work item {work_item_id} queued: {waits_because}"


def continues_text(work_item_id: int, agent: str) -> str:
    return f"work item {work_item_id} continues (stop it with {program_name()} stop {agent})"


def timed_out_text(
    seconds: float, work_item_id: int, agent: str, run: LastRun | None, waits_because: str | None
) -> str:
    state = f"run {run.id} is {run.state}" if run else f"queued: {waits_because}"
    return (
        f"not finished after {seconds:g} s: work item {work_item_id} continues, {state} "
        f"(stop it with {program_name()} stop {agent})"
    )


def ending_of(run: LastRun) -> str:
    """`run 227 lost: its worker died`, `run 228 failed (exit code 3)`."""
    code = "" if run.exit_code is None else f" (exit code {run.exit_code})"
    # The stored error of a lost run starts with the state: "lost: its worker died".
    reason = run.error.removeprefix(f"{run.state}: ")
    error = f": {reason}" if reason else code
    return f"run {run.id} {run.state}{error}"


def exit_code_of(run: LastRun | None) -> int:
    """As in a shell: 128 plus the number of a signal, 124 for a timeout."""
    if run is None:
        return 1
    if run.state == "succeeded":
        return 0
    if run.state == "timed_out":
        return TIMED_OUT
    code = run.exit_code or 1
    return 128 - code if code < 0 else code


# --- stopping -------------------------------------------------------------------------------

NO_WORKER = (
    f"no worker is running: the work item starts when Drover is started ({program_name()} up)"
)
KEEP_QUEUE_REFUSED = (
    "--keep-queue applies to a shutdown only: stopping runs does not clear the queue"
)
DRAIN_CONTINUES = "the drain continues: Drover exits when the last run has ended"


def work_items(count: int) -> str:
    return f"{count} work item{'' if count == 1 else 's'}"


def stopping_run_text(run_id: int, *, asked: bool) -> str:
    return f"run {run_id} {'is being' if asked else 'was already being'} stopped"


def stopping_agent_text(agent: str, runs: int) -> str:
    if not runs:
        return f"{agent}: nothing was running"
    return f"{agent}: stopping {runs} run{'' if runs == 1 else 's'}"


def waiting_work_text(agent: str, waiting: int) -> str:
    return (
        f"{work_items(waiting)} in the queue may take the free slots "
        f"({program_name()} pause {agent}, or {program_name()} queue clear {agent})"
    )


def cleared_text(cleared: int) -> str:
    return f"cleared {work_items(cleared)} ({program_name()} queue restore puts them back)"
