"""Says whether Drover runs, and where."""

import sys
from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand
from agents_app.conf import CONF, PROGRAM
from agents_app.installation import running_address, running_up

# As of `systemctl status` and of init scripts: the program does not run.
NOT_RUNNING = 3


class Command(DroverCommand):
    help = "Say whether Drover runs: process, address and project. Exit status 3 if it does not."
    examples = (("status", "The process and the address; `stat` shows the agents."),)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print JSON.")

    def handle(self, *, json: bool, **_: Any) -> None:
        process, address = running_up(CONF.data), running_address(CONF.data)
        facts = {"running": process is not None, "process": process, "address": address or None}
        text = f"Drover does not run for {CONF.data} (start it with {PROGRAM} up -d)"
        if process is not None:
            text = (
                f"Drover runs as process {process}\n"
                f"  dashboard  {address}/admin/\n"
                f"  project    {CONF.project}\n"
                f"  data       {CONF.data}"
            )
        about = facts | {"project": CONF.project, "data": CONF.data}
        self.result(text, about, json=json)
        if process is None:
            sys.exit(NOT_RUNNING)
