"""Prints a completion script for a shell."""

import sys
from shlex import quote
from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import SHELLS, DroverCommand, script
from agents_app.conf import CHECKOUT, ROOT


class Command(DroverCommand):
    help = "Print a script that completes commands, options, agents and schedules in a shell."
    examples = (
        ("completion bash", "The first lines of the script describe its installation."),
        ("completion zsh", "The same for zsh."),
        ("completion fish", "The same for fish."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("shell", choices=SHELLS)

    def handle(self, *, shell: str, **_: Any) -> None:
        python = sys.executable
        program = f"{quote(python)} {quote(str(ROOT))}/manage.py" if CHECKOUT else "drover"
        self.screen.text(script(shell, python, str(ROOT), program))
