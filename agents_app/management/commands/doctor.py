"""Says what is wrong with this installation, and what to do."""

import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand
from agents_app.maintenance import WRONG, doctor


class Command(DroverCommand):
    help = "Check the installation; exit code 1 if anything is wrong."
    examples = (
        ("doctor", "What is wrong, and what to do."),
        ("doctor --invariants --json", "With the rows that must not exist, for a program."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--invariants", action="store_true", help="Also look for rows that must not exist."
        )

    def handle(self, *, json: bool, **options: Any) -> None:
        findings = doctor.examine(self.now)
        if options["invariants"]:
            findings += doctor.examine_rows(self.now)
        wrong = any(finding.verdict == WRONG for finding in findings)
        if json:
            self.screen.json({"ok": not wrong, "findings": [asdict(f) for f in findings]})
        else:
            rows = [(f.verdict, f.check, f.detail, f.advice) for f in findings]
            self.screen.table(("verdict", "check", "finding", "what to do"), rows)
        if wrong:
            sys.exit(1)
