"""Writes a backup of this installation to one file."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from agents_app.backups import create_backup
from agents_app.cli import DroverCommand, add_passphrase_argument, read_passphrase
from agents_app.conf import CONF


class Command(DroverCommand):
    help = "Back up database, keys and agents' state to one file; Drover may run."
    examples = (
        ("backup drover.backup", "Ask for a passphrase, which seals the keys."),
        ("backup drover.backup --passphrase-file FILE", "For cron: nothing is asked."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="The file to create.")
        add_passphrase_argument(parser)
        parser.add_argument("--json", action="store_true", help="Print JSON.")

    def handle(self, *, file: str, json: bool, **options: Any) -> None:
        passphrase = read_passphrase(options["passphrase_file"], repeat=True)
        made = create_backup(CONF, Path(file).absolute(), passphrase, self.now)
        for path in made.left_out:
            self.remark(f"left out: state/{path} (not a file that can be read and restored)")
        for name in made.variables:
            self.remark(f"not in the backup: the keys in {name}; keep them elsewhere")
        manifest = made.manifest
        rows = sum(manifest.counts.values())
        text = f"{made.file}: {manifest.engine}, {rows} rows, {manifest.state_files} state files"
        self.result(text, asdict(made), json=json)
