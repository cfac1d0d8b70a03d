"""Sends a message to an agent."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, find_agent, find_tenant
from agents_app.signals import messages


class Command(DroverCommand):
    help = "Send a message to an agent: its current run reads it, otherwise it becomes a work item."
    examples = (
        ("message reporter 'Leave out the weekend.'", "Send a message to the agent reporter."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent", metavar="AGENT")
        parser.add_argument("text", metavar="TEXT")
        super().add_arguments(parser)

    def handle(self, *, agent: str, text: str, tenant: str, json: bool, **_: Any) -> None:
        found = find_agent(find_tenant(tenant), agent)
        sent = messages.send(found, text, self.by, self.now)
        queued = f"work item {sent.work_item_id}" if sent.work_item_id else "in its inbox"
        value = {"id": sent.pk, "agent": found.name, "work_item_id": sent.work_item_id}
        self.result(f"message {sent.pk} to {found.name}: {queued}", value, json=json)
