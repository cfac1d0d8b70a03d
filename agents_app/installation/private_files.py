"""Directories and files that only this user may read."""

import contextlib
import os
import secrets
import stat
from pathlib import Path

from agents_app.errors import ConfigError

# O_EXCL and O_NOFOLLOW: a file or a link that another user has put there is never written to.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def create_private_directory(path: str | Path, mode: int = 0o700) -> None:
    """Create the directory and its parents, private too; existing directories stay as they are."""
    try:
        os.mkdir(path, mode)  # noqa: PTH102 - pathlib is slower, and every run calls this
    except FileExistsError:
        pass
    except FileNotFoundError:
        create_private_directory(Path(path).parent)
        create_private_directory(path, mode)


def private_directory(path: Path, mode: int = 0o700) -> Path:
    """Create the directory, or check that the existing one belongs to this user and set its mode.

    For directories below a directory that other users may write to.
    """
    create_private_directory(path, mode)
    # lstat: a link in a directory that several users share must not be followed.
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise ConfigError(
            f"{path} must be a directory, not a link, that belongs to this user: remove it"
        )
    if stat.S_IMODE(status.st_mode) != mode:
        path.chmod(mode)
    return path


def create_private_file(path: str | Path, mode: int = 0o600, directory: int | None = None) -> int:
    """Create a file that must not exist and return its descriptor, open for writing.

    `directory` is the descriptor of the directory that a relative path starts from.
    """
    return os.open(path, _NEW, mode, dir_fd=directory)


def open_private_file(path: Path) -> int:
    """The descriptor of a file that only this user may read, created if missing; for locks."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def write_private(path: Path, text: str) -> None:
    """Replace the file in one step, so that no process reads an incomplete file."""
    _draft(path, text).replace(path)


def read_or_create_private(path: Path, text: str) -> str:
    """The content of the file, which is created with `text` if it does not exist."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_text(encoding="utf-8")
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    draft = _draft(path, text)
    try:
        # link, not rename: of several processes that create the file, the first keeps its text.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    return path.read_text(encoding="utf-8")


def read_or_create_secret(path: Path) -> str:
    """The secret in the file; a new secret if the file does not exist."""
    return read_or_create_private(path, secrets.token_urlsafe(24) + "\n").strip()


def _draft(path: Path, text: str) -> Path:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    # Left behind by a process that had the same id.
    draft.unlink(missing_ok=True)
    with os.fdopen(create_private_file(draft), "w", encoding="utf-8") as file:
        file.write(text)
        # On disk before the file is used: rows that are encrypted with a key must not outlive it.
        file.flush()
        os.fsync(file.fileno())
    return draft
