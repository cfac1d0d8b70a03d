"""Removes old rows now."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand
from agents_app.database import ENGINE
from agents_app.maintenance import old_rows, remove_old_rows


class Command(DroverCommand):
    help = "Remove old rows now; Drover does this every hour."
    examples = (
        ("retention --dry-run", "Count the rows that would be removed."),
        ("retention", "Remove old rows and the rows that belong to them."),
        ("retention --vacuum", "Then return their space to the file system."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="Only count.")
        rewrite = "Then write the database anew without free space; other writers wait."
        parser.add_argument("--vacuum", action="store_true", help=rewrite)
        parser.add_argument("--json", action="store_true", help="Print JSON.")

    def handle(self, *, dry_run: bool, vacuum: bool, json: bool, **_: Any) -> None:
        now = self.now
        old = sum(rows.count() for rows in old_rows(now))
        if dry_run:
            self.result(f"{_rows(old)} would be removed", {"old": old, "removed": 0}, json=json)
            return
        with self.progress("removing", old) as report:
            removed = remove_old_rows(now, report)
        text, value = f"{_rows(removed)} removed", {"old": old, "removed": removed}
        if vacuum:
            value["freed_bytes"] = ENGINE.return_free_space(rewrite=True)
            text += f", {value['freed_bytes'] / 1e6:.1f} MB returned to the file system"
        self.result(text, value, json=json)


def _rows(count: int) -> str:
    return "1 old row" if count == 1 else f"{count} old rows"
