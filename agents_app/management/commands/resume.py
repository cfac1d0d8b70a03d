"""Resumes a paused agent or the whole scheduler."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, find_agent, find_tenant
from agents_app.runs import control


class Command(DroverCommand):
    help = "Resume an agent or the scheduler; queued work items start."
    examples = (
        ("resume reporter", "Resume one agent."),
        ("resume", "Resume the scheduler."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("agent", metavar="AGENT", nargs="?", default="")

    def handle(self, *, tenant: str, agent: str, json: bool, **_: Any) -> None:
        owner = find_tenant(tenant)
        if agent:
            done = control.resume_agent(find_agent(owner, agent), self.by, self.now)
        else:
            done = control.resume_tenant(owner, self.by, self.now)
        text = f"{agent or 'Scheduler'} {'resumed' if done else 'was not paused'}"
        self.result(text, {"agent": agent or None, "paused": False, "changed": done}, json=json)
