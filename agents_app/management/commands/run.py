"""Asks for a run of an agent now."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import AskingCommand, find_agent, find_tenant
from agents_app.runs import control


class Command(AskingCommand):
    help = "Ask an agent to run now; it starts at once if a slot is free, else it is queued."
    examples = (
        ("run reporter", "Now, or as soon as a slot is free."),
        ("run reporter --prompt 'Only today.' --wait", "With other words, followed to its end."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("agent", metavar="AGENT")
        parser.add_argument("--prompt", metavar="TEXT", default="", help="What it should do.")
        parser.add_argument(
            "--wait", action="store_true", help="Follow its output and exit with its exit code."
        )

    def handle(
        self, *, tenant: str, agent: str, prompt: str, wait: bool, json: bool, **_: Any
    ) -> None:
        found = find_agent(find_tenant(tenant), agent)
        item = control.run_agent(found, self.by, self.now, prompt=prompt)
        self.report(item, json=json, wait=wait)
