"""The acts of concurrent workers whose runs call each other, wait, stop waiting, and end."""

import random
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import DatabaseError, connection

from agents_app.database.transactions import in_transaction
from agents_app.errors import DroverError
from agents_app.models import Agent, Run, Trigger
from agents_app.models.run import LENT
from agents_app.runs import dispatch, lifecycle
from agents_app.runs.dispatch import Request
from agents_app.runs.job import Ending, Job
from agents_app.signals import calls, cancel_wait, handle_signal
from tests.races.beat_acts import PAUSE_SECONDS, wait_until
from tests.races.checks import EPOCH
from tests.races.setup_acts import make_worker

MAX_RUNS_OF_ONE_WORKER = 4


@dataclass
class LiveRun:
    """A run of one worker, and the ids of its calls."""

    job: Job
    made: list[int] = field(default_factory=list)

    @property
    def run(self) -> Run:
        return Run.objects.select_related("agent").get(pk=self.job.run_id)


class RandomWorker:
    """A worker whose runs perform random steps."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.worker_id = make_worker()
        self.agents = list(Agent.objects.order_by("pk").values_list("name", flat=True))
        self.live: dict[int, LiveRun] = {}

    def step(self) -> None:
        if len(self.live) < MAX_RUNS_OF_ONE_WORKER:
            self._start()
        if self.live:
            self._act(self.dice.choice(list(self.live.values())))

    def _start(self) -> None:
        pending = Run.objects.filter(state="pending").order_by("?").values_list("pk", flat=True)
        run_id = pending.first()
        if run_id is None:
            # Not too much other work: it would be before all calls in the queue.
            if not self.live and not Run.objects.filter(slot__isnull=False).exists():
                self._ask()
            return
        job = in_transaction(partial(lifecycle.start_run, run_id, self.worker_id, EPOCH))
        if job is not None:
            self.live[job.run_id] = LiveRun(job)

    def _ask(self) -> None:
        agent = Agent.objects.get(name=self.dice.choice(self.agents))
        dispatch.enqueue(Request(agent.tenant_id, agent.pk, Trigger.MANUAL), EPOCH)

    def _act(self, one: LiveRun) -> None:
        chance = self.dice.random()
        if not one.made and chance < 0.6:
            self._call(one)
        elif one.made and chance < 0.9:
            if _signal(one, "wait", ids=one.made).get("done", True):
                self._end(one)
        elif one.made and chance < 0.95:
            cancel_wait(one.job.token, "wait", {"ids": one.made}, EPOCH)
        else:
            self._end(one)

    def _call(self, one: LiveRun) -> None:
        for _ in range(self.dice.randint(1, 2)):
            answer = _signal(one, "call", agent=self.dice.choice(self.agents))
            one.made += [answer["callId"]] if "callId" in answer else []
        if one.made:
            _signal(one, "wait", ids=one.made)
        else:
            self._end(one)

    def _end(self, one: LiveRun) -> None:
        del self.live[one.job.run_id]
        if self.dice.random() < 0.1:
            in_transaction(partial(lifecycle.lose_run, one.run, EPOCH, "lost"))
            # The sweep that found the run lost fills its slot.
            dispatch.admit_tenant(one.job.tenant_id, EPOCH)
            return
        state = self.dice.choice(["succeeded", "succeeded", "failed", "stopped"])
        end = partial(lifecycle.finish_run, one.job, Ending(state), EPOCH, self.worker_id)
        in_transaction(partial(end, hand_over=False))
        dispatch.admit_under_cap(one.job.tenant_id, EPOCH)


def _signal(one: LiveRun, name: str, **fields: Any) -> dict[str, Any]:
    """The answer to a signal; empty if it is refused, such as a call of the own agent."""
    try:
        return dict(handle_signal(one.job.token, name, fields, EPOCH).content)
    except DroverError:
        return {}


def run_random_calls(start_at: float, seconds: float, seed: int) -> list[str]:
    """Perform random steps for some seconds, then end all runs; returns the errors."""
    worker, until, errors = RandomWorker(seed), start_at + seconds, []
    wait_until(start_at)
    while time.time() < until or worker.live:
        try:
            if time.time() < until:
                worker.step()
            else:
                worker._end(next(iter(worker.live.values())))
        except DatabaseError as error:
            errors.append(repr(error))
            connection.close()
        time.sleep(PAUSE_SECONDS)
    return errors


def most_working(start_at: float, seconds: float) -> dict[str, int]:
    """The maximum of parallel runs that had not lent their slot: of one agent, and of all."""
    until, of_agent, of_all = start_at + seconds, 0, 0
    wait_until(start_at)
    while time.time() < until:
        rows = list(Run.objects.filter(slot__isnull=False).values_list("agent_id", *_SLOT_COLUMNS))
        slots = [agent for agent, slot, _ in rows if slot < LENT]
        of_agent = max([of_agent, *(slots.count(agent) for agent in set(slots))])
        of_all = max(of_all, sum(place is None or place < LENT for *_, place in rows))
    return {"of_agent": of_agent, "of_all": of_all}


_SLOT_COLUMNS = ("slot", "project_slot")


def loans_made() -> int:
    borrowed = Run.objects.exclude(borrowed_from=None) | Run.objects.exclude(
        project_borrowed_from=None
    )
    return borrowed.count()


def open_calls() -> int:
    unfinished = ("queued", "admitted")
    return calls.AgentCall.objects.filter(
        ended_at=None, work_item__state__in=unfinished, caller_run__slot=None
    ).count()
