"""Explains why a schedule did not run; a short form of `schedule why`."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.console import READ_HELP, add_why
from agents_app.management.commands.schedule import Command as ScheduleCommand


class Command(ScheduleCommand):
    help = "Explain why a schedule did not run: obstacles and latest firings."
    examples = (
        ("why reporter", "The only schedule of the agent, or a list of several."),
        ("why main --at 'yesterday at 09:00'", "Why it did not run at this time."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help=READ_HELP)
        self.add_common(parser)
        add_why(parser)

    def handle(self, *, tenant: str, **options: Any) -> None:
        super().handle(verb="why", tenant=tenant, **options)
