"""Stops the Drover of the data directory."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand
from agents_app.conf import CONF
from agents_app.errors import Refused
from agents_app.installation import running_up, stop_up


class Command(DroverCommand):
    help = "Stop Drover: running agents may finish, queued work is kept."
    examples = (
        ("down", "Wait until running agents have finished and all processes have ended."),
        ("down --now", "Stop running agents as well."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--now", action="store_true", help="Stop running agents as well.")
        parser.add_argument(
            "--timeout", type=float, default=900.0, metavar="SECONDS", help="Default: 900."
        )
        parser.add_argument("--json", action="store_true", help="Print JSON.")

    def handle(self, *, now: bool, timeout: float, json: bool, **_: Any) -> None:
        process = running_up(CONF.data)
        if process is None:
            self.result(f"Drover does not run for {CONF.data}", {"stopped": False}, json=json)
            return
        if not stop_up(CONF.data, process, now=now, seconds=timeout):
            raise Refused(
                f"process {process} has not ended within {timeout:g} s: agents are running. "
                "Wait, or stop them with --now."
            )
        text = f"Drover stopped (process {process})"
        self.result(text, {"stopped": True, "process": process}, json=json)
