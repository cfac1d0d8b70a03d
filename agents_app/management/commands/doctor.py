"""Checks the installation and prints findings with remedies."""

import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand
from agents_app.maintenance import WRONG, doctor


class Command(DroverCommand):
    help = "Check the installation; exit code 1 if there is a problem."
    examples = (
        ("doctor", "Findings and remedies."),
        ("doctor --invariants --json", "Also check database invariants; print JSON."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--invariants", action="store_true", help="Check database invariants, too."
        )

    def handle(self, *, json: bool, **options: Any) -> None:
        findings = doctor.examine(lambda: self.now)
        if options["invariants"]:
            findings += doctor.examine_rows(self.now)
        wrong = any(finding.verdict == WRONG for finding in findings)
        if json:
            self.screen.json({"ok": not wrong, "findings": [asdict(f) for f in findings]})
        else:
            rows = [(f.verdict, f.check, f.detail, f.advice) for f in findings]
            self.screen.table(("verdict", "check", "finding", "remedy"), rows)
        if wrong:
            sys.exit(1)
