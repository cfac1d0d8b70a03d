"""Deletes an agent whose directory was removed, with its history."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.accounts import removal
from agents_app.cli import DroverCommand, find_agent, find_tenant
from agents_app.errors import Refused


class Command(DroverCommand):
    help = "Delete an agent whose directory was removed, with its schedules, runs and usage."
    examples = (("forget reporter --yes", "Delete the agent and its history permanently."),)

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("agent", metavar="AGENT")
        parser.add_argument("--yes", action="store_true", help="Confirm the deletion.")

    def handle(self, *, tenant: str, agent: str, yes: bool, json: bool, **_: Any) -> None:
        found = find_agent(find_tenant(tenant), agent)
        if not yes and found.removed_at:
            runs = found.runs.count()
            raise Refused(f"this deletes {agent} and its {runs} runs: add --yes to confirm")
        removal.forget_agent(found, self.by, self.now)
        self.result(f"{agent} forgotten", {"agent": agent, "forgotten": True}, json=json)
