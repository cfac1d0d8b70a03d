"""Restores a backup into this installation."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from agents_app.backups import restore_backup
from agents_app.cli import DroverCommand, add_passphrase_argument, read_passphrase
from agents_app.conf import CONF, PROGRAM


class Command(DroverCommand):
    help = "Restore a backup; Drover must not run."
    examples = (
        ("restore drover.backup", "Into an empty installation."),
        ("restore drover.backup --force", "Replace the content; replaced files are kept."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="A file that `backup` has made.")
        add_passphrase_argument(parser)
        parser.add_argument("--force", action="store_true", help="Replace existing content.")
        parser.add_argument("--json", action="store_true", help="Print JSON.")

    def handle(self, *, file: str, force: bool, json: bool, **options: Any) -> None:
        passphrase = read_passphrase(options["passphrase_file"], repeat=False)
        done = restore_backup(CONF, Path(file).absolute(), passphrase, self.now, force=force)
        manifest = done.manifest
        rows = sum(manifest.counts.values())
        lines = [f"restored {rows} rows and {manifest.state_files} state files"]
        if done.replaced:
            lines.append(f"replaced files are in {done.replaced}")
        if done.needs_migrate:
            lines.append(f"the backup has an older schema: {PROGRAM} up migrates it")
        self.result("\n".join(lines), asdict(done), json=json)
