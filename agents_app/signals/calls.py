"""Calls: a run starts another agent, reads the state of the call and its result."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from agents_app.database import in_transaction
from agents_app.errors import NotFound, Refused
from agents_app.events import journal
from agents_app.models import Agent, AgentCall, Run, Trigger, WorkItem
from agents_app.runs import Request, dispatch, lifecycle, lock_agents

CALL_TIMEOUT = timedelta(hours=2)
NO_ANSWER = "no answer within 2 hours"
# The texts that the signal protocol prescribes where people see another one.
PROTOCOL_ERRORS = {lifecycle.CALLER_FINISHED: "caller container exited"}
OPEN_WORK = (WorkItem.State.QUEUED, WorkItem.State.ADMITTED)


class SelfCall(Refused):
    """An agent may not call itself."""

    code = "self_call"


class TooDeep(Refused):
    """The call would exceed `max_call_depth` of the calling agent."""

    code = "call_depth"


@dataclass(frozen=True, slots=True)
class CallState:
    """The state of a call for its caller; `status` is pending, running, completed or error."""

    call_id: int
    agent: str
    status: str
    run_id: int | None = None
    return_value: str = ""
    error: str = ""

    @property
    def is_over(self) -> bool:
        return self.status in {"completed", "error"}

    def as_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"callId": self.call_id, "status": self.status}
        if self.status == "completed":
            shown["returnValue"] = self.return_value
        if self.status == "error":
            shown["errorMessage"] = PROTOCOL_ERRORS.get(self.error, self.error)
        return shown


# --- calling --------------------------------------------------------------------------------


def call(run: Run, agent_name: str, text: str, now: datetime) -> CallState:
    """Enqueue a run of the agent as a call of `run`; committed when it returns."""
    caller = run.agent
    target = Agent.objects.filter(tenant=run.tenant_id, name=agent_name).first()
    if target is None or target.removed_at is not None:
        raise NotFound(f"there is no agent {agent_name!r}")
    if target.pk == caller.pk:
        raise SelfCall(f"{caller.name} may not call itself: use rerun, or call another agent")
    if run.depth + 1 > caller.max_call_depth:
        chain = " → ".join([*(each.agent.name for each in lineage(run)), target.name])
        raise TooDeep(
            f"at most {caller.max_call_depth} calls deep (max_call_depth of {caller.name}): {chain}"
        )
    return in_transaction(partial(_call, run, target, text, now))


def _call(run: Run, target: Agent, text: str, now: datetime) -> CallState:
    item = dispatch.enqueue_in_transaction(
        Request(
            tenant_id=run.tenant_id,
            agent_id=target.pk,
            trigger=Trigger.CALL,
            prompt=text,
            requested_by=f"{run.agent.name}, run {run.pk}",
            parent_run_id=run.pk,
            depth=run.depth + 1,
            trace_id=run.trace_id,
        ),
        now,
    )
    made = AgentCall.objects.create(
        tenant_id=run.tenant_id,
        caller_run=run,
        agent=target,
        work_item=item,
        created_at=now,
        deadline_at=now + CALL_TIMEOUT,
    )
    # The run's row last: every transaction locks agents, then the tenant, then runs.
    record_signal(run, now)
    journal.record(
        journal.JournalEntry("run.called", now, run.tenant_id, run.agent_id, run.pk, target.name)
    )
    # No run of the new work item can exist before the commit.
    return _state(made.pk, target.name, None, "", item.state, item.reason, *[None] * 4)


def record_signal(run: Run, now: datetime, **columns: Any) -> None:
    """Update the row of a run that sent a signal; raises Refused if the run has ended.

    In the caller's transaction."""
    running = Run.objects.filter(pk=run.pk, state=Run.State.RUNNING)
    if not running.update(signaled_at=now, **columns):
        raise Refused("the run has ended: its signals are no longer accepted")


# --- the state of a call --------------------------------------------------------------------


def check(run_id: int, call_id: int) -> CallState:
    """The state of one call of this run; raises NotFound, also for a call of another run."""
    found = states(run_id, [call_id])
    if not found:
        raise NotFound(f"there is no call {call_id} of this run")
    return found[0]


def states(run_id: int, call_ids: Iterable[int]) -> list[CallState]:
    return _states(AgentCall.objects.filter(caller_run=run_id, pk__in=list(call_ids)))


def lend_slot(run_id: int, found: Sequence[CallState], now: datetime) -> int:
    """While the run waits, admit its queued calls on loan of its slot; returns how many."""
    pending = [each.call_id for each in found if each.status == "pending"]
    queued = WorkItem.objects.filter(
        call__caller_run=run_id, call__pk__in=pending, state=WorkItem.State.QUEUED
    )
    admitted, blocked_agents = 0, set[int]()
    for item, agent_id in queued.order_by("pk").values_list("pk", "agent_id"):
        # A paused or busy agent must not keep other agents from starting.
        if agent_id in blocked_agents:
            continue
        if dispatch.admit_on_loan(item, now):
            admitted += 1
        else:
            blocked_agents.add(agent_id)
    return admitted


def _states(calls: "QuerySet[AgentCall]") -> list[CallState]:
    newest = Run.objects.filter(work_item=OuterRef("work_item")).order_by("-pk")
    rows = calls.order_by("pk").values_list(
        *("pk", "agent__name", "ended_at", "error", "work_item__state", "work_item__reason"),
        *(Subquery(newest.values(name)[:1]) for name in ("pk", "state", "return_value", "error")),
    )
    return [_state(*row) for row in rows]


def _state(
    call_id: int,
    agent: str,
    ended_at: datetime | None,
    error: str,
    work: str,
    reason: str,
    run_id: int | None,
    run: str | None,
    value: str | None,
    run_error: str | None,
) -> CallState:
    """An error of the call itself, such as its timeout, comes before the state of its work item."""
    if ended_at is not None and error:
        return CallState(call_id, agent, "error", run_id, error=error)
    if work in OPEN_WORK:
        is_running = work == WorkItem.State.ADMITTED and run == Run.State.RUNNING
        return CallState(call_id, agent, "running" if is_running else "pending", run_id)
    if work == WorkItem.State.DONE:
        return CallState(call_id, agent, "completed", run_id, value or "")
    failed = (run_error or reason or run or work) if work == WorkItem.State.FAILED else reason
    return CallState(call_id, agent, "error", run_id, error=failed or work)


# --- the tree -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Branch:
    """A run, or a work item without a run, and the calls it made."""

    agent: str
    run_id: int | None
    state: str
    call_id: int | None
    status: str
    error: str
    calls: "tuple[Branch, ...]"


def lineage(run: Run) -> list[Run]:
    """The chain of callers from the first run to this run."""
    chain = [run]
    while (parent_id := chain[0].parent_run_id) is not None:
        parent = Run.objects.select_related("agent").filter(pk=parent_id).first()
        if parent is None:
            break
        chain.insert(0, parent)
    return chain


def call_tree(run: Run) -> Branch:
    """The whole tree of calls that the run belongs to."""
    root = lineage(run)[0]
    below: dict[int, list[CallState]] = {}
    callers = [root.pk]
    while callers:
        found = _states(AgentCall.objects.filter(caller_run__in=callers))
        by_call = dict(
            AgentCall.objects.filter(caller_run__in=callers).values_list("pk", "caller_run_id")
        )
        for each in found:
            below.setdefault(by_call[each.call_id], []).append(each)
        callers = [each.run_id for each in found if each.run_id is not None]
    run_states = Run.objects.filter(pk__in=_run_ids(root.pk, below)).values_list("pk", "state")
    return _branch(CallState(0, root.agent.name, "", root.pk), below, dict(run_states))


def _run_ids(root: int, below: dict[int, list[CallState]]) -> list[int]:
    return [root, *(e.run_id for calls in below.values() for e in calls if e.run_id is not None)]


def _branch(
    call: CallState, below: dict[int, list[CallState]], run_states: dict[int, str]
) -> Branch:
    calls = below.get(call.run_id, ()) if call.run_id is not None else ()
    return Branch(
        agent=call.agent,
        run_id=call.run_id,
        state=run_states.get(call.run_id or 0, "queued"),
        call_id=call.call_id or None,
        status=call.status,
        error=call.error,
        calls=tuple(_branch(each, below, run_states) for each in calls),
    )


# --- timeout --------------------------------------------------------------------------------


def end_overdue(now: datetime) -> int:
    """End calls that have no result after CALL_TIMEOUT; returns how many. Called by the sweep."""
    due = AgentCall.objects.filter(deadline_at__lte=now, ended_at__isnull=True)
    if not due.exists():
        return 0
    overdue = list(due.filter(work_item__state__in=OPEN_WORK))
    # Finished calls get an end time, so that the sweep does not read them again.
    finished = due.exclude(work_item__state__in=OPEN_WORK)
    in_transaction(lambda: finished.update(ended_at=now))
    return sum(in_transaction(partial(_end_overdue, call, now)) for call in overdue)


def _end_overdue(call: AgentCall, now: datetime) -> bool:
    lock_agents([call.agent_id])
    still_open = AgentCall.objects.filter(
        pk=call.pk, ended_at__isnull=True, work_item__state__in=OPEN_WORK
    )
    ended = still_open.update(ended_at=now, error=NO_ANSWER)
    if ended:
        lifecycle.drop_work(call.work_item_id, now, NO_ANSWER)
    return bool(ended)
