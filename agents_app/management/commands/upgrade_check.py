"""Says whether the database can be migrated to this version now."""

import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from agents_app.backups import UpgradeReport, check_upgrade
from agents_app.cli import DroverCommand
from agents_app.conf import CONF


class Command(DroverCommand):
    help = "Show version, schema and pending migrations; exit code 1 if an upgrade must wait."
    examples = (("upgrade_check", "With the new version, before it is started."),)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print JSON.")

    def handle(self, *, json: bool, **_: Any) -> None:
        report = check_upgrade(CONF)
        self.result("\n".join(lines_of(report)), asdict(report), json=json)
        if report.problems:
            sys.exit(1)


def lines_of(report: UpgradeReport) -> list[str]:
    lines = [
        f"version: {report.version}",
        f"schema: {report.schema or 'none'} ({report.engine})",
        f"pending migrations: {', '.join(report.pending) or 'none'}",
        f"safe while old workers run: {'no' if report.unsafe else 'yes'}",
        *(f"  {operation}" for operation in report.unsafe),
        f"free disk: {report.free_bytes / 1e9:.1f} GB (needed {report.needed_bytes / 1e9:.1f} GB)",
    ]
    return lines + [f"problem: {problem}" for problem in report.problems]
