"""Adapters of the suites about work, runs, calls and locks: real rows, a clock that is told."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from agents_app.database.transactions import in_transaction
from agents_app.errors import DroverError, NotFound
from agents_app.models import Agent, Run, Tenant, Trigger, WorkItem
from agents_app.runs import control, lifecycle
from agents_app.runs.job import Job
from agents_app.signals import calls, handle_signal, locks
from agents_app.signals.locks import Holder, LockRefused
from tests.agents_app.fleet import NOON, Fleet

Case = dict[str, Any]


def _fleet(name: str = "default") -> Fleet:
    """A new one for each case, so that many may be run in one transaction."""
    Tenant.objects.filter(name=name).delete()
    return Fleet(Tenant.objects.create(name=name))


def _signal(job: Job, name: str, **fields: Any) -> None:
    handle_signal(job.token, name, fields, NOON)


# --- calls ----------------------------------------------------------------------------------


def calls_admission(case: Case) -> Case:
    fleet = _fleet()
    # The caller is one of its agent's runs, and a pool that is free has room for another.
    source = fleet.agent(case["source"], scale=2, max_call_depth=case["max_depth"])
    for name, pool in case["pools"].items():
        agent = source if name == source.name else fleet.agent(name)
        if pool == "B":
            fleet.start(fleet.enqueue(agent))
    item = fleet.enqueue(source, trigger=Trigger.CALL, depth=case["depth"])
    caller = Run.objects.get(pk=fleet.start(item).run_id)
    became: Case = {"started": [], "queued": []}
    for target in case["targets"]:
        try:
            made = calls.call(caller, target, "", NOON)
        except DroverError:
            continue
        work = WorkItem.objects.get(call__pk=made.call_id)
        admitted = work.state == WorkItem.State.ADMITTED
        became["started" if admitted else "queued"].append(target)
    return became


class _Call:
    """One call from p-1, and a run that is not its caller."""

    def __init__(self) -> None:
        self.fleet = _fleet()
        self.runs = {name: self._run(name) for name in ("p-1", "p-2")}
        target = self.fleet.agent("callee")
        self.state = calls.call(self.runs["p-1"], target.name, "", NOON)
        self.job: Job | None = None

    def _run(self, name: str) -> Run:
        job = self.fleet.start(self.fleet.enqueue(self.fleet.agent(name)))
        return Run.objects.get(pk=job.run_id)

    def check(self, caller: str) -> Case | None:
        known = self.runs.get(caller)
        try:
            shown = calls.check(known.pk if known else 0, self.state.call_id).as_json()
        except NotFound:
            return None
        return {name: value for name, value in shown.items() if name != "callId"}

    def run(self) -> bool:
        return self._changes(self._start)

    def complete(self, value: str | None = None) -> bool:
        return self._changes(lambda: self._end("succeeded", value))

    def fail(self, message: str) -> bool:
        return self._changes(lambda: self._end("failed", None, error=message))

    def fail_all(self, caller: str) -> int:
        run = self.runs[caller]
        ended = in_transaction(lambda: lifecycle.end_calls(run.pk, NOON, lifecycle.CALLER_FINISHED))
        return int(ended)

    def _start(self) -> None:
        item = WorkItem.objects.get(call__pk=self.state.call_id)
        if item.runs.filter(state="pending").exists():
            self.job = self.fleet.start(item)

    def _end(self, state: str, value: str | None, **how: Any) -> None:
        self._start()
        if self.job is not None and Run.objects.get(pk=self.job.run_id).state == "running":
            if value is not None:
                _signal(self.job, "return", text=value)
            self.fleet.finish(self.job, state, **how)

    def _changes(self, act: Callable[[], None]) -> bool:
        """Whether the caller sees a difference."""
        before = self.check("p-1")
        act()
        return self.check("p-1") != before


_VERBS: dict[str, Callable[..., Any]] = {
    "check": _Call.check,
    "complete": _Call.complete,
    "fail": _Call.fail,
    "failAllByCaller": _Call.fail_all,
    **dict.fromkeys(("run", "running", "start", "setRunning", "markRunning"), _Call.run),
}


def calls_state(case: Case) -> list[Any]:
    call = _Call()
    return [_VERBS[verb](call, *arguments) for verb, *arguments in case["ops"]]


# What the cases may call what is not a schedule.
_TRIGGERS = {"agent": "call", "subagent": "call", "cron": "schedule"}


# --- reruns ---------------------------------------------------------------------------------


def reruns(case: Case) -> Case:
    fleet = _fleet()
    agent = fleet.agent(max_reruns=case["max_reruns"])
    if case["trigger"] == "schedule":
        fleet.fire(fleet.schedule(agent))
        job: Job | None = fleet.start(agent.work_items.get())
    else:
        named: str = case["trigger"]
        job = fleet.start(fleet.enqueue(agent, trigger=Trigger(_TRIGGERS.get(named, named))))
    results, runs = case["results"], 0
    while job is not None:
        result = results[min(runs, len(results) - 1)]
        runs += 1
        if runs > (case["agent_disabled_after_runs"] or runs):
            # The run that was under way when it was disabled is the last one.
            Agent.objects.filter(pk=agent.pk).update(scale=0)
        if result == "rerun":
            _signal(job, "rerun")
        job = fleet.finish(job, "failed" if result == "error" else "succeeded", hand_over=True)
    made = agent.runs.order_by("pk").select_related("agent")
    return {
        "runs": len(made),
        "trigger_sources": [run.trigger_detail if run.rerun else None for run in made],
    }


# --- the queue ------------------------------------------------------------------------------


class _Queue:
    """Every agent's only slot is taken, so that what is asked for waits."""

    def __init__(self, case: Case) -> None:
        self.fleet = _fleet()
        self.case = case
        self.values: dict[int, Any] = {}
        self.busy: dict[str, Job] = {}

    def agent(self, name: str) -> Agent:
        if name not in self.busy:
            size = self.case["per_agent_max"].get(name, self.case["max"])
            agent = self.fleet.agent(name, work_queue_size=size)
            self.busy[name] = self.fleet.start(self.fleet.enqueue(agent))
        return Agent.objects.get(name=name, tenant=self.fleet.tenant)

    def waiting(self, name: str) -> list[WorkItem]:
        queued = self.agent(name).work_items.filter(state=WorkItem.State.QUEUED)
        return list(queued.order_by("pk"))

    def enq(self, name: str, value: Any) -> Case:
        before = {item.pk for item in self.waiting(name)}
        item = self.fleet.enqueue(self.agent(name), trigger=Trigger.WEBHOOK)
        self.values[item.pk] = value
        item.refresh_from_db()
        gone = before - {one.pk for one in self.waiting(name)}
        dropped = [self.values[pk] for pk in sorted(gone)]
        accepted = item.state == WorkItem.State.QUEUED
        return {"accepted": accepted, "dropped": dropped[0] if dropped else None}

    def deq(self, name: str) -> Any:
        """The slot becomes free, and what is next takes it."""
        agent = self.agent(name)
        following = self.fleet.finish(self.busy[name], hand_over=True)
        if following is None:
            self.busy[name] = self.fleet.start(self.fleet.enqueue(agent))
            return None
        self.busy[name] = following
        return self.values[following.work_item_id]

    def size(self, name: str) -> int:
        return len(self.waiting(name))

    def peek(self, name: str, limit: int | None = None) -> list[Any]:
        return [self.values[item.pk] for item in self.waiting(name)][:limit]

    def clear(self, name: str) -> str:
        control.clear_queue(self.agent(name).work_items.all(), "the case", NOON)
        return "ok"

    def clear_all(self) -> str:
        control.clear_queue(WorkItem.objects.filter(tenant=self.fleet.tenant), "the case", NOON)
        return "ok"


def work_queue(case: Case) -> list[Any]:
    queue = _Queue(case)
    verbs: dict[str, Callable[..., Any]] = {
        "enq": queue.enq,
        "deq": queue.deq,
        "size": queue.size,
        "peek": queue.peek,
        "clear": queue.clear,
        "clearAll": queue.clear_all,
    }
    return [verbs[verb](*arguments) for verb, *arguments in case["ops"]]


# --- locks ----------------------------------------------------------------------------------


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _lock(tenant: int, now: datetime, verb: str, arguments: list[Any]) -> Any:
    if verb == "list":
        return [
            {
                "resourceKey": lock.uri,
                "holder": lock.holder,
                "heldSince": lock.held_since.timestamp(),
                "expiresAt": lock.expires_at.timestamp(),
            }
            for lock in locks.held_locks(tenant, now)
        ]
    if verb == "releaseAll":
        (holder,) = arguments
        held = [lock.uri for lock in locks.held_locks(tenant, now) if lock.holder == holder]
        for uri in held:
            locks.release(Holder(tenant, holder), uri, now)
        return len(held)
    uri, holder, *ttl = arguments
    try:
        if verb == "release":
            locks.release(Holder(tenant, holder), uri, now)
            return {"ok": True}
        if verb == "heartbeat":
            held = locks.heartbeat(Holder(tenant, holder), uri, now, *ttl)
            return {"ok": True, "expiresAt": held.expires_at.timestamp()}
        locks.acquire(Holder(tenant, holder), uri, now, *ttl)
        return {"ok": True}
    except LockRefused as refusal:
        return dict(refusal.more)


def locks_suite(case: Case) -> list[Any]:
    tenant = _fleet().tenant.pk
    return [_lock(tenant, _moment(at), verb, rest) for at, verb, *rest in case["ops"]]


FLEET_ADAPTERS: dict[str, Callable[[Any], Any]] = {
    "calls.admission": calls_admission,
    "calls.state": calls_state,
    "reruns": reruns,
    "work_queue": work_queue,
    "locks": locks_suite,
}
