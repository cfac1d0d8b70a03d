"""Who may read the files of an installation: created private, checked by doctor, repaired at start.

Only this user may enter the data directory. If agents run as other users, these users may pass
through it to their own directories, but not list it.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agents_app.conf import Conf, database_settings
from agents_app.errors import ConfigError
from agents_app.installation.private_files import open_private_file

# Permissions of the group and of others; the owner's are left as they are.
_FOREIGN, _PASSAGE = 0o077, 0o011
# Directories that runs of other users pass through.
_PASSED = ("", "runs", "state")
_PRIVATE_FILES = ("secret_key", "credential_keys", "*.password", "*.lock", "*.ready")
_PRIVATE_TREES = ("logs", "redis")
_DATABASE_FILES = ("", "-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class OpenPath:
    """A path that other users may access although they must not."""

    path: Path
    mode: int
    private_mode: int


def create_data_directory(data: Path) -> None:
    """Create the data directory for this user alone; an existing one stays as it is."""
    try:
        data.mkdir(0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot create the data directory {data}: {error.strerror}. "
            "Set DROVER_DATA to a directory that this user may write to."
        ) from None


def create_private_database(conf: Conf) -> None:
    """Create the data directory and the file of SQLite, which other users could read otherwise.

    SQLite gives the files beside it (-wal, -shm) the mode of the database file.
    """
    path = _database_file(conf)
    # A directory that cannot be created is reported by the code that opens the file.
    with contextlib.suppress(OSError):
        conf.data.mkdir(0o700, parents=True, exist_ok=True)
        if path is not None and not path.exists():
            os.close(open_private_file(path))


def find_open_paths(conf: Conf) -> Iterator[OpenPath]:
    """Yields the data directory before its contents."""
    for path, allowed in _expected(conf):
        with contextlib.suppress(OSError):
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            if not stat.S_ISLNK(status.st_mode) and mode & _FOREIGN & ~allowed:
                yield OpenPath(path, mode, mode & (~_FOREIGN | allowed))


def repair_permissions(conf: Conf, *, passage: bool | None = None) -> int:
    """Take the access of other users away; returns the number of changed paths.

    `passage` says whether runs of other users must pass; None leaves this as it is. A path of
    another user stays as it is, and so does a shared directory such as /tmp: doctor names both.
    """
    found = list(find_open_paths(conf))
    changed = sum(_change_mode(each.path, each.private_mode) for each in found)
    if passage is not None:
        for path in _passed_directories(conf.data):
            mode = stat.S_IMODE(path.stat().st_mode)
            changed += _change_mode(path, mode | _PASSAGE if passage else mode & ~_FOREIGN)
    return changed


def allow_passage(data: Path) -> None:
    """Let other users pass through the data directory to their own files, without listing it."""
    for path in _passed_directories(data):
        _change_mode(path, stat.S_IMODE(path.stat().st_mode) | _PASSAGE)


def _passed_directories(data: Path) -> list[Path]:
    return [path for name in _PASSED if (path := data / name).is_dir()]


def _expected(conf: Conf) -> Iterator[tuple[Path, int]]:
    """Each path and the permissions that others may have."""
    for name in _PASSED:
        yield conf.data / name, _PASSAGE
    for pattern in _PRIVATE_FILES:
        for path in conf.data.glob(pattern):
            yield path, 0
    for tree in _PRIVATE_TREES:
        for directory, _, files in os.walk(conf.data / tree):
            yield Path(directory), 0
            for name in files:
                yield Path(directory, name), 0
    for path in database_files(conf):
        yield path, 0


def _change_mode(path: Path, mode: int) -> bool:
    """False if the path has the mode, or may not be changed."""
    with contextlib.suppress(OSError):
        status = path.lstat()
        before = stat.S_IMODE(status.st_mode)
        if before == mode or before & stat.S_ISVTX or status.st_uid != os.geteuid():
            return False
        path.chmod(mode)
        return True
    return False


def database_files(conf: Conf) -> tuple[Path, ...]:
    """The file of SQLite and the files that SQLite puts beside it; empty for PostgreSQL."""
    file = _database_file(conf)
    return tuple(Path(f"{file}{ending}") for ending in _DATABASE_FILES) if file else ()


def _database_file(conf: Conf) -> Path | None:
    database = database_settings(conf.database_url)
    return Path(database["NAME"]) if "sqlite" in database["ENGINE"] else None
