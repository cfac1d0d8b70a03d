"""A SQLite database: copied while it is written to, checked, and counted."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from agents_app.errors import Refused

# The original may still run on this host: the sweep of the copy must neither wait for its workers
# nor end the processes and containers of its runs. Runs of ended workers are lost at once.
FORGET_PROCESSES = (
    "UPDATE drover_worker SET host = 'restored', boot_id = 'restored', state = 'dead', "
    "ended_at = lease_until WHERE ended_at IS NULL",
    "UPDATE drover_run SET container = '' WHERE slot IS NOT NULL",
)
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"


@contextlib.contextmanager
def open_sqlite(path: Path, *, writable: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection without Django's conversions; the file must exist."""
    mode = "rw" if writable else "ro"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=20)) as connection:
        yield connection


def copy_database(source: Path, target: Path) -> None:
    """The online backup of SQLite: one consistent moment, while other processes write."""
    with (
        open_sqlite(source, writable=True) as database,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        database.backup(copy)
        # One file, without a -wal beside it.
        copy.execute("PRAGMA journal_mode=DELETE")


def count_rows(path: Path) -> dict[str, int]:
    with open_sqlite(path) as database:
        return {table: _count(database, table) for (table,) in database.execute(_TABLES).fetchall()}


def read_migrations(path: Path) -> list[str]:
    sql = "SELECT name FROM django_migrations WHERE app = 'agents_app' ORDER BY id"
    with open_sqlite(path) as database:
        return [name for (name,) in database.execute(sql)]


def check_copy(path: Path, counts: dict[str, int]) -> None:
    """Refuse a file that SQLite finds damaged, or that has other rows than the manifest says."""
    try:
        with open_sqlite(path) as database:
            (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if found == "ok" and count_rows(path) == counts:
            return
    except sqlite3.DatabaseError as error:
        found = str(error)
    raise Refused(f"the database in the backup is damaged: {found}; nothing was changed")


def forget_processes(path: Path) -> None:
    with open_sqlite(path, writable=True) as database, database:
        for statement in FORGET_PROCESSES:
            database.execute(statement)


def _count(database: sqlite3.Connection, table: str) -> int:
    (count,) = database.execute(f'SELECT count(*) FROM "{table}"').fetchone()  # noqa: S608
    return int(count)
