"""A run asks another agent for something, hears how far that is, and gets its answer."""

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

LONGEST_CALL = timedelta(hours=2)
NO_ANSWER = "no answer within 2 hours"
# The texts that the signal protocol prescribes where people see another one.
PROTOCOL_ERRORS = {lifecycle.CALLER_GONE: "caller container exited"}
OPEN_WORK = (WorkItem.State.QUEUED, WorkItem.State.ADMITTED)


class SelfCall(Refused):
    """An agent may not call itself."""

    code = "self_call"


class TooDeep(Refused):
    """The chain of calls is as long as the caller's agent allows."""

    code = "call_depth"


@dataclass(frozen=True, slots=True)
class CallState:
    """A call as its caller sees it: pending, running, completed or error."""

    call_id: int
    agent: str
    status: str
    run_id: int | None = None
    return_value: str = ""
    error: str = ""

    @property
    def is_over(self) -> bool:
        return self.status in {"completed", "error"}

    def shown(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"callId": self.call_id, "status": self.status}
        if self.status == "completed":
            shown["returnValue"] = self.return_value
        if self.status == "error":
            shown["errorMessage"] = PROTOCOL_ERRORS.get(self.error, self.error)
        return shown


# --- calling --------------------------------------------------------------------------------


def call(run: Run, agent_name: str, text: str, now: datetime) -> CallState:
    """Durable when it returns; the called run starts at once, or waits for a slot."""
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
    item = dispatch.enqueue_here(
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
        deadline_at=now + LONGEST_CALL,
    )
    # The run's row last, after all agents and the tenant: that is the order of everybody's locks.
    note_signal(run, now)
    journal.record(
        journal.JournalEntry("run.called", now, run.tenant_id, run.agent_id, run.pk, target.name)
    )
    # Its work was read a moment ago, and no run of it can have begun before the commit.
    return _state(made.pk, target.name, None, "", item.state, item.reason, *[None] * 4)


def note_signal(run: Run, now: datetime, **columns: Any) -> None:
    """Each word of a run names it and asks that it still goes on: a late one moves no row."""
    going_on = Run.objects.filter(pk=run.pk, state=Run.State.RUNNING)
    if not going_on.update(signaled_at=now, **columns):
        raise Refused("the run has ended: nothing it says counts any more")


# --- asking how far it is -------------------------------------------------------------------


def check(run_id: int, call_id: int) -> CallState:
    """Another caller's call is none."""
    found = states(run_id, [call_id])
    if not found:
        raise NotFound(f"there is no call {call_id} of this run")
    return found[0]


def states(run_id: int, call_ids: Iterable[int]) -> list[CallState]:
    return _states(AgentCall.objects.filter(caller_run=run_id, pk__in=list(call_ids)))


def lend_to(run_id: int, found: Sequence[CallState], now: datetime) -> int:
    """While the run waits: what it called and what still waits may run in its place."""
    pending = [each.call_id for each in found if each.status == "pending"]
    queued = WorkItem.objects.filter(
        call__caller_run=run_id, call__pk__in=pending, state=WorkItem.State.QUEUED
    )
    admitted, refused = 0, set[int]()
    for item, agent_id in queued.order_by("pk").values_list("pk", "agent_id"):
        # One that is paused or busy keeps nobody else from starting.
        if agent_id in refused:
            continue
        if dispatch.admit_on_loan(item, now):
            admitted += 1
        else:
            refused.add(agent_id)
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
    """What the work item does not know, its caller's end or a time limit, comes first."""
    if ended_at is not None and error:
        return CallState(call_id, agent, "error", run_id, error=error)
    if work in OPEN_WORK:
        going_on = work == WorkItem.State.ADMITTED and run == Run.State.RUNNING
        return CallState(call_id, agent, "running" if going_on else "pending", run_id)
    if work == WorkItem.State.DONE:
        return CallState(call_id, agent, "completed", run_id, value or "")
    failed = (run_error or reason or run or work) if work == WorkItem.State.FAILED else reason
    return CallState(call_id, agent, "error", run_id, error=failed or work)


# --- the tree -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Branch:
    """A run, or work that has none yet, and all that it called."""

    agent: str
    run_id: int | None
    state: str
    call_id: int | None
    status: str
    error: str
    calls: "tuple[Branch, ...]"


def lineage(run: Run) -> list[Run]:
    """The chain of callers, the first one first, up to this run."""
    chain = [run]
    while (parent_id := chain[0].parent_run_id) is not None:
        parent = Run.objects.select_related("agent").filter(pk=parent_id).first()
        if parent is None:
            break
        chain.insert(0, parent)
    return chain


def call_tree(run: Run) -> Branch:
    """The whole tree, whichever of its runs is asked about."""
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


# --- the end --------------------------------------------------------------------------------


def end_overdue(now: datetime) -> int:
    """For the sweep: calls that nobody answered in two hours."""
    due = AgentCall.objects.filter(deadline_at__lte=now, ended_at__isnull=True)
    if not due.exists():
        return 0
    overdue = list(due.filter(work_item__state__in=OPEN_WORK))
    # Those that were answered need not be looked at again; their work says how they ended.
    answered = due.exclude(work_item__state__in=OPEN_WORK)
    in_transaction(lambda: answered.update(ended_at=now))
    return sum(in_transaction(partial(_end_overdue, one, now)) for one in overdue)


def _end_overdue(call: AgentCall, now: datetime) -> bool:
    lock_agents([call.agent_id])
    open_one = AgentCall.objects.filter(
        pk=call.pk, ended_at__isnull=True, work_item__state__in=OPEN_WORK
    )
    ended = open_one.update(ended_at=now, error=NO_ANSWER)
    if ended:
        lifecycle.drop(call.work_item_id, now, NO_ANSWER)
    return bool(ended)
