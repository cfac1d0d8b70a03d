"""Asks for the work of an earlier run again."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app import dispatch
from agents_app.cli.asking import AskingCommand
from agents_app.cli.find import find_run, find_tenant


class Command(AskingCommand):
    help = "Run the work of an earlier run again, with the same input."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("run", metavar="RUN", help="The number of the run.")
        parser.add_argument(
            "--wait", action="store_true", help="Follow its output and exit with its exit code."
        )

    def handle(self, *, tenant: str, run: str, wait: bool, json: bool, **_: Any) -> None:
        found = find_run(find_tenant(tenant), run)
        self.report(dispatch.rerun(found, self.by, self.now), json=json, wait=wait)
