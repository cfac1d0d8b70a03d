"""Reads secrets outside of the database: `env:NAME`, or `file:path` below the project."""

import os
import stat
from pathlib import Path

MAX_FILE_CHARACTERS = 4096


def read_reference(ref: str, project: Path | None, *, is_trusted: bool) -> str:
    """The secret, or empty if the variable or file does not exist.

    A project that is not trusted has no variables, and only files inside of it."""
    kind, _, where = ref.partition(":")
    if kind == "env":
        return os.environ.get(where, "") if is_trusted else ""
    if project is None:
        return ""
    path = project / where
    return _content(path) if is_trusted or _is_inside(path, project) else ""


def _is_inside(path: Path, project: Path) -> bool:
    try:
        return path.resolve().is_relative_to(project.resolve())
    except (OSError, RuntimeError):  # RuntimeError: a loop, in Python 3.11 and 3.12
        return False


def _content(path: Path) -> str:
    try:
        # O_NONBLOCK: opening a FIFO must not wait for a writer.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(handle, encoding="utf-8") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return ""
            return file.read(MAX_FILE_CHARACTERS).strip()
    except (OSError, ValueError):
        return ""
