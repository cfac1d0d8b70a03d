"""What racing workers do whose runs call each other, wait, give up, and end in any way."""

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
from tests.races.beats import PAUSE_SECONDS, wait_until
from tests.races.checks import EPOCH
from tests.races.field import make_worker

MOST_OF_ONE_WORKER = 4


@dataclass
class Acting:
    """A run in the hands of one worker, and what it has called."""

    job: Job
    made: list[int] = field(default_factory=list)

    @property
    def run(self) -> Run:
        return Run.objects.select_related("agent").get(pk=self.job.run_id)


class Troupe:
    """One worker's runs; what they do is thrown with dice."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.worker_id = make_worker()
        self.agents = list(Agent.objects.order_by("pk").values_list("name", flat=True))
        self.live: dict[int, Acting] = {}

    def step(self) -> None:
        if len(self.live) < MOST_OF_ONE_WORKER:
            self._start()
        if self.live:
            self._act(self.dice.choice(list(self.live.values())))

    def _start(self) -> None:
        pending = Run.objects.filter(state="pending").order_by("?").values_list("pk", flat=True)
        run_id = pending.first()
        if run_id is None:
            # Not too many strangers: they would be before all calls in the queue.
            if not self.live and not Run.objects.filter(slot__isnull=False).exists():
                self._ask()
            return
        job = in_transaction(partial(lifecycle.start_run, run_id, self.worker_id, EPOCH))
        if job is not None:
            self.live[job.run_id] = Acting(job)

    def _ask(self) -> None:
        agent = Agent.objects.get(name=self.dice.choice(self.agents))
        dispatch.enqueue(Request(agent.tenant_id, agent.pk, Trigger.MANUAL), EPOCH)

    def _act(self, one: Acting) -> None:
        chance = self.dice.random()
        if not one.made and chance < 0.6:
            self._call(one)
        elif one.made and chance < 0.9:
            if _signal(one, "wait", ids=one.made).get("done", True):
                self._end(one)
        elif one.made and chance < 0.95:
            cancel_wait(one.job.token, "wait", {}, EPOCH)
        else:
            self._end(one)

    def _call(self, one: Acting) -> None:
        for _ in range(self.dice.randint(1, 2)):
            told = _signal(one, "call", agent=self.dice.choice(self.agents))
            one.made += [told["callId"]] if "callId" in told else []
        if one.made:
            _signal(one, "wait", ids=one.made)
        else:
            self._end(one)

    def _end(self, one: Acting) -> None:
        del self.live[one.job.run_id]
        if self.dice.random() < 0.1:
            in_transaction(partial(lifecycle.lose_run, one.run, EPOCH, "lost"))
            # Its place is filled by the sweep that found it lost.
            dispatch.admit_tenant(one.job.tenant_id, EPOCH)
            return
        state = self.dice.choice(["succeeded", "succeeded", "failed", "stopped"])
        end = partial(lifecycle.finish_run, one.job, Ending(state), EPOCH, self.worker_id)
        in_transaction(partial(end, hand_over=False))
        dispatch.admit_under_cap(one.job.tenant_id, EPOCH)


def _signal(one: Acting, name: str, **fields: Any) -> dict[str, Any]:
    """What the product refuses, such as a call of oneself, is an answer."""
    try:
        return dict(handle_signal(one.job.token, name, fields, EPOCH).content)
    except DroverError:
        return {}


def call_around(start_at: float, seconds: float, seed: int) -> list[str]:
    """For some seconds, then all that is left ends; the errors that came up."""
    troupe, until, errors = Troupe(seed), start_at + seconds, []
    wait_until(start_at)
    while time.time() < until or troupe.live:
        try:
            if time.time() < until:
                troupe.step()
            else:
                troupe._end(next(iter(troupe.live.values())))
        except DatabaseError as error:
            errors.append(repr(error))
            connection.close()
        time.sleep(PAUSE_SECONDS)
    return errors


def most_working(start_at: float, seconds: float) -> dict[str, int]:
    """The most runs at once that had not lent their place: of one agent, and of all together."""
    until, of_agent, of_all = start_at + seconds, 0, 0
    wait_until(start_at)
    while time.time() < until:
        rows = list(Run.objects.filter(slot__isnull=False).values_list("agent_id", *_PLACES))
        slots = [agent for agent, slot, _ in rows if slot < LENT]
        of_agent = max([of_agent, *(slots.count(agent) for agent in set(slots))])
        of_all = max(of_all, sum(place is None or place < LENT for *_, place in rows))
    return {"of_agent": of_agent, "of_all": of_all}


_PLACES = ("slot", "project_slot")


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
