"""Prints a completion script for a shell."""

import sys
from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import SHELLS, DroverCommand, script
from agents_app.conf import ROOT


class Command(DroverCommand):
    help = "Print a script that completes commands, options, agents and schedules in a shell."
    examples = (
        ("completion bash", "The first lines of the script describe its installation."),
        ("completion zsh", "The same for zsh."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("shell", choices=SHELLS)

    def handle(self, *, shell: str, **_: Any) -> None:
        self.screen.text(script(shell, sys.executable, str(ROOT)))
