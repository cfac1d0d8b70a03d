"""Pauses an agent or the whole scheduler."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, find_agent, find_tenant
from agents_app.errors import Refused
from agents_app.runs import control

LONGEST_NOTE = 500


class Command(DroverCommand):
    help = "Pause an agent or the scheduler: schedules are skipped, other work is queued."
    examples = (
        ("pause reporter --note 'too loud'", "Pause one agent."),
        ("pause", "Pause the scheduler."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("agent", metavar="AGENT", nargs="?", default="")
        parser.add_argument(
            "--note", metavar="TEXT", default="", help="Reason, shown in the admin."
        )

    def handle(self, *, tenant: str, agent: str, note: str, json: bool, **_: Any) -> None:
        if len(note) > LONGEST_NOTE:
            raise Refused(f"the note has {len(note)} characters; the maximum is {LONGEST_NOTE}")
        owner = find_tenant(tenant)
        if agent:
            done = control.pause_agent(find_agent(owner, agent), self.by, self.now, note)
        else:
            done = control.pause_tenant(owner, self.by, self.now, note)
        text = f"{agent or 'Scheduler'} {'paused' if done else 'was already paused'}"
        self.result(text, {"agent": agent or None, "paused": True, "changed": done}, json=json)
