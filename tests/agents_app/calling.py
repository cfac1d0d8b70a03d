"""Runs that signal: each with its token, as the program in it would use it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents_app.models import Agent, AgentCall, Run, WorkItem
from agents_app.runs.job import Job
from agents_app.signals import handle_signal
from tests.agents_app.fleet import NOON, Fleet


@dataclass
class Program:
    """What runs in a run, and speaks for it."""

    fleet: Fleet
    job: Job

    @property
    def run(self) -> Run:
        return Run.objects.select_related("agent").get(pk=self.job.run_id)

    def says(self, name: str, now: datetime = NOON, **fields: Any) -> dict[str, Any]:
        return dict(handle_signal(self.job.token, name, fields, now).content)

    def calls(self, agent: Agent, now: datetime = NOON) -> int:
        return int(self.says("call", now, agent=agent.name, text=f"for {agent}")["callId"])

    def waits(self, *calls: int, now: datetime = NOON) -> dict[str, Any]:
        """One look; it goes on waiting."""
        return self.says("wait", now, ids=list(calls))

    def ends(self, state: str = "succeeded", now: datetime = NOON, **how: Any) -> Job | None:
        return self.fleet.finish(self.job, state, now, **how)


def program(fleet: Fleet, agent: Agent, now: datetime = NOON, **request: Any) -> Program:
    return Program(fleet, fleet.start(fleet.enqueue(agent, now, **request), now))


def called(fleet: Fleet, call_id: int, now: datetime = NOON) -> Program:
    """A worker starts what was called; it must have a place."""
    return Program(fleet, fleet.start(work_of(call_id), now))


def work_of(call_id: int) -> WorkItem:
    return AgentCall.objects.get(pk=call_id).work_item
