"""Reads secrets outside of the database: `env:NAME`, or `file:path` below the project."""

import os
from pathlib import Path

from agents_app.conf import CONF

MAX_FILE_CHARACTERS = 4096


def read_secret(ref: str) -> str:
    """The secret, or empty if the variable or file does not exist."""
    kind, _, where = ref.partition(":")
    return os.environ.get(where, "") if kind == "env" else _content(CONF.project / where)


def _content(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(MAX_FILE_CHARACTERS).strip()
    except (OSError, ValueError):
        return ""
