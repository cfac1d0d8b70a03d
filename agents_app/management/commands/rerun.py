"""Enqueues the work of finished runs again."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import EnqueueCommand, find_run, find_tenant
from agents_app.console import add_rerun, wait_seconds
from agents_app.errors import Refused
from agents_app.models import Run
from agents_app.runs import dispatch


class Command(EnqueueCommand):
    help = "Queue the input of earlier runs again."
    examples = (
        ("rerun 42 --wait", "Rerun run 42 and follow its output."),
        ("rerun 42 43 44", "Rerun three runs."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_rerun(parser)

    def handle(
        self, *, tenant: str, runs: list[str], wait: bool, timeout: str, json: bool, **_: Any
    ) -> None:
        seconds = wait_seconds(wait=wait, timeout=timeout)
        owner = find_tenant(tenant)
        found = [find_run(owner, text) for text in dict.fromkeys(runs)]
        if len(found) == 1:
            item = dispatch.enqueue_rerun(found[0], self.by, self.now)
            self.report(item, json=json, wait=wait, seconds=seconds)
        elif wait:
            raise Refused("--wait follows one run: name one run, or omit --wait")
        else:
            self._rerun_all(found, json=json)

    def _rerun_all(self, runs: list[Run], *, json: bool) -> None:
        items = []
        with self.progress("queuing", len(runs)) as report:
            for done, run in enumerate(runs, start=1):
                items.append(dispatch.enqueue_rerun(run, self.by, self.now))
                report(done)
        self.report_all(items, json=json)
