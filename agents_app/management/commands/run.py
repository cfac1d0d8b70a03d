"""Starts an agent now, or queues it."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import EnqueueCommand, find_agent, find_tenant
from agents_app.console import add_run, wait_seconds
from agents_app.runs import control


class Command(EnqueueCommand):
    help = "Run an agent now; queued if no slot is free."
    examples = (
        ("run reporter", "Run it, or queue it until a slot is free."),
        ("run reporter --prompt 'Only today.' --wait", "Run with a prompt and follow the output."),
        ("run reporter --wait --timeout 10m", "Follow it for at most ten minutes."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_run(parser)

    def handle(
        self,
        *,
        tenant: str,
        agent: str,
        prompt: str,
        wait: bool,
        timeout: str,
        json: bool,
        **_: Any,
    ) -> None:
        seconds = wait_seconds(wait=wait, timeout=timeout)
        found = find_agent(find_tenant(tenant), agent)
        item = control.run_agent(found, self.by, self.now, prompt=prompt)
        self.report(item, json=json, wait=wait, seconds=seconds)
