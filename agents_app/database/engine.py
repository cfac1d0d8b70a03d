"""The contract of a database engine: every operation that SQLite and PostgreSQL do differently.

`sqlite.py` and `postgres.py` implement it, `sql.py` picks one of them for the process, and
tests/agents_app/database/test_engine_conformance.py proves each operation on both.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

Row = tuple[Any, ...]
Statement = tuple[str, Sequence[Any]]
# The types of the columns of a table of values, as PostgreSQL names them.
ColumnTypes = Mapping[str, str]
Columns = Mapping[str, Sequence[Any]]


class Engine(ABC):
    """The operations of one database, on the calling thread's Django connection to it.

    Every operation runs in the transaction that the caller has opened, if there is one.
    Parameters of SQL are written `%s` for both engines. Errors are those of `django.db`.
    """

    name: ClassVar[str]
    # One thread of a process commits the transactions of all its threads, many in one commit.
    groups_commits: ClassVar[bool]
    # A row never becomes visible after a row of the same table that has a higher id.
    ids_appear_in_order: ClassVar[bool]
    # One statement can update and insert rows of several tables (WITH ... UPDATE ... RETURNING).
    writes_several_tables_at_once: ClassVar[bool]
    # A connection can be lost while the database goes on, so a second attempt is worth a try.
    connection_can_be_lost: ClassVar[bool]

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self._of_thread = threading.local()

    def wrapper(self) -> BaseDatabaseWrapper:
        """Django's object for the calling thread's connection, which may be closed.

        Found once by each thread: Django's search asks for an event loop every time, which took
        seven percent of the time of a run.
        """
        try:
            found: BaseDatabaseWrapper = self._of_thread.wrapper
        except AttributeError:
            found = self._of_thread.wrapper = connections[self.alias]
        return found

    def connection(self) -> BaseDatabaseWrapper:
        """The calling thread's connection, open."""
        database = self.wrapper()
        if database.connection is None:
            database.ensure_connection()
        return database

    @abstractmethod
    def release_connection(self) -> None:
        """Return the connection after a unit of work, where another thread may need it."""

    # --- statements -------------------------------------------------------------------------

    @abstractmethod
    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> Any:
        """Execute on the driver's connection and return the driver's cursor.

        Django's cursors cost more than the statements of the hot path.
        """

    @abstractmethod
    def fetch_all(self, sql: str, values: Sequence[Any]) -> list[Row]:
        """All rows at once; for many rows that contain times quicker than `execute`."""

    @abstractmethod
    def fetch_each(self, statements: Iterable[Statement]) -> list[list[Row]]:
        """Execute the statements in order and return the rows of each."""

    @abstractmethod
    def with_rows(self, sql: str, types: ColumnTypes, columns: Columns) -> list[Statement]:
        """Statements for `fetch_each` that execute `sql` with a table `v` of the given columns.

        `sql` has to return rows. Times are datetimes. Where one statement cannot take all rows,
        there are several statements.
        """

    # --- times ------------------------------------------------------------------------------

    @abstractmethod
    def to_database_time(self, moment: datetime) -> Any:
        """A time as a parameter of SQL."""

    @staticmethod
    def from_database_time(value: Any) -> datetime:
        """A time from a row, in UTC; SQLite returns the result of an expression as a text."""
        read: datetime = datetime.fromisoformat(value) if isinstance(value, str) else value
        return read if read.tzinfo else read.replace(tzinfo=UTC)

    @abstractmethod
    def select_columns(self, names: Sequence[str]) -> list[str]:
        """The columns as expressions whose times `from_database_times` reads quickly.

        A column is a time if its name ends in `_at` or `_until`.
        """

    @abstractmethod
    def from_database_times(self, column: Sequence[Any]) -> Sequence[Any]:
        """The times of a column that was selected with `select_columns`; None stays None."""

    @abstractmethod
    def seconds_between(self, earlier: str, later: str) -> str:
        """The SQL expression for the number of seconds from one time to another."""

    @abstractmethod
    def time_bucket(self, moment: str) -> str:
        """The SQL expression for the number of the interval, counted from 1970, that a time is in.

        The length of the interval in seconds is the expression's only parameter.
        """

    @abstractmethod
    def greatest(self, *expressions: str) -> str:
        """The SQL expression for the greatest of several values, none of which may be NULL."""

    @abstractmethod
    def clock_difference(self, now: datetime) -> timedelta:
        """How far the database's clock is ahead of `now`, which is this host's clock."""

    @abstractmethod
    def file(self) -> Path | None:
        """The file of the database; None if a server has it."""

    @abstractmethod
    def return_free_space(self, *, rewrite: bool = False) -> int:
        """Give space of deleted rows back to the file system; returns the number of bytes.

        Called outside of transactions. `rewrite` writes the whole database anew, while all other
        writers wait; without it only a short step is done, and only where that is possible.
        """

    @abstractmethod
    def accepts_wrong_password(self) -> bool:
        """Whether the server lets the user of this connection in with any password."""

    # --- locks ------------------------------------------------------------------------------

    @abstractmethod
    def row_lock(self, table: str = "") -> str:
        """The clause that locks the selected rows until the transaction ends.

        Rows may still be referenced by foreign keys. `table` is the name or alias of the table
        whose rows are locked, if the statement reads several.
        """

    @abstractmethod
    def row_lock_skipping_locked(self, table: str) -> str:
        """The clause that locks the selected rows and leaves out those locked elsewhere."""

    @abstractmethod
    def lock_row(self, table: str, key: int) -> None:
        """Lock one row until the transaction ends; foreign keys may still reference it."""

    @abstractmethod
    def lock_number(self, kind: int, number: int) -> None:
        """Wait for the lock on a pair of 32-bit numbers and hold it until the transaction ends."""

    # --- order of commits -------------------------------------------------------------------

    @abstractmethod
    def writing_transactions(self, table: str) -> frozenset[str]:
        """The open transactions that may insert rows with ids below the highest visible id."""

    @abstractmethod
    def newest_settled_id(self, table: str, after: int, now: datetime) -> int:
        """The highest id above `after` below which no open transaction can still insert a row.

        `after` itself if there is none. The table has the columns `id` and `at`, the time at
        which a row was written.
        """
