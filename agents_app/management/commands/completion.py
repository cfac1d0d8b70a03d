"""Prints what makes a shell complete these commands."""

import sys
from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import SHELLS, DroverCommand, script
from agents_app.conf import ROOT


class Command(DroverCommand):
    help = "Print a script that completes commands, options, agents and schedules in a shell."
    examples = (
        ("completion bash", "How to use it stands at its top."),
        ("completion zsh", "The same for zsh."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("shell", choices=SHELLS)

    def handle(self, *, shell: str, **_: Any) -> None:
        self.screen.text(script(shell, sys.executable, str(ROOT)))
