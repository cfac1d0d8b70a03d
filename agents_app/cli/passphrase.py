"""Input of the passphrase of a backup from a file, a variable or a hidden prompt."""

import getpass
import os
import sys
from pathlib import Path

from django.core.management.base import CommandParser

from agents_app.errors import Refused

PASSPHRASE_VARIABLE = "DROVER_BACKUP_PASSPHRASE"  # noqa: S105


def add_passphrase_argument(parser: CommandParser) -> None:
    parser.add_argument(
        "--passphrase-file",
        metavar="FILE",
        help=f"File with the passphrase (else {PASSPHRASE_VARIABLE}, else a prompt).",
    )


def read_passphrase(file: str | None, *, repeat: bool) -> str:
    """`repeat` asks twice: a mistyped passphrase would make the keys unreadable."""
    if file:
        passphrase = _first_line(Path(file))
    elif not (passphrase := os.environ.get(PASSPHRASE_VARIABLE, "")) and sys.stdin.isatty():
        passphrase = getpass.getpass("Passphrase of the backup: ")
        if repeat and getpass.getpass("Again: ") != passphrase:
            raise Refused("the two passphrases differ")
    if not passphrase:
        raise Refused(f"no passphrase: use --passphrase-file FILE or set {PASSPHRASE_VARIABLE}")
    return passphrase


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"the passphrase file {path} cannot be read: {error}") from None
