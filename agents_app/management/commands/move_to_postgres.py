"""Copies the SQLite database to PostgreSQL."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.backups import move_to_postgres
from agents_app.cli import DroverCommand
from agents_app.conf import CONF, PROGRAM


class Command(DroverCommand):
    help = "Copy the SQLite database with everything to an empty PostgreSQL database."
    examples = (
        ("move_to_postgres postgresql://drover@localhost/drover", "Password: PGPASSWORD or file."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("url", metavar="URL", help="postgresql://user@host:port/name")
        parser.add_argument("--json", action="store_true", help="Print JSON.")

    def handle(self, *, url: str, json: bool, **_: Any) -> None:
        def report(table: str, count: int) -> None:
            if not json:
                self.remark(f"{table}: {count} rows")

        counts = move_to_postgres(CONF, url, report)
        text = (
            f"moved {sum(counts.values())} rows of {len(counts)} tables; all counts are equal.\n"
            "Next: set DATABASE_URL to the URL (with its password) wherever Drover is started, "
            f"start Drover, and run {PROGRAM} doctor --invariants.\n"
            "The SQLite file is unchanged: remove it when all is well."
        )
        self.result(text, {"counts": counts}, json=json)
