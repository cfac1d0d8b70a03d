"""Directories and files that only this user may read; no secret is chosen or printed here."""

import os
import secrets
import stat
from pathlib import Path

from agents_app.errors import ConfigError


def private_directory(path: Path) -> Path:
    """Creates it with mode 0700, or makes sure that what is there is ours alone."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    # lstat: a link planted in a shared directory must not pass for ours.
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise ConfigError(f"{path} must be a directory of its own that belongs to this user")
    path.chmod(0o700)
    return path


def write_private(path: Path, text: str) -> None:
    """Replaces the file in one step, so that nobody reads half of it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)


def kept_secret(path: Path) -> str:
    """The secret stored there; a new one the first time."""
    if not path.exists():
        write_private(path, secrets.token_urlsafe(24) + "\n")
    return path.read_text(encoding="utf-8").strip()
