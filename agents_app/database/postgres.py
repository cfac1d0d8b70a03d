"""The engine for PostgreSQL: many writers, row locks, a server that may be on another host."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import connections

from agents_app.database.engine import Columns, ColumnTypes, Engine, Row, Statement

_CERTIFICATE = ("sslcert", "sslkey")
# The time from taking an id to being visible to others is milliseconds for Drover's statements.
SETTLE = timedelta(seconds=2)
_WRITERS = """
SELECT virtualtransaction FROM pg_locks
WHERE relation = %s::regclass AND mode = 'RowExclusiveLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
_OLDEST_WRITER = """
SELECT min(xact_start) FROM pg_stat_activity
WHERE datname = current_database() AND backend_xid IS NOT NULL"""


class PostgresEngine(Engine):
    """A row has its id before it is committed, so ids may become visible out of order."""

    name = "postgresql"
    groups_commits = False
    ids_appear_in_order = False
    writes_several_tables_at_once = True
    connection_can_be_lost = True

    def release_connection(self) -> None:
        """Close it, or return it to the pool: the server limits the number of connections."""
        connections[self.alias].close()

    # --- statements -------------------------------------------------------------------------

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> Any:
        database = self.connection()
        with database.wrap_database_errors:
            return database.connection.execute(sql, values)

    def fetch_all(self, sql: str, values: Sequence[Any]) -> list[Row]:
        """In the binary format: Django's cursors read times as texts, in Python."""
        database: Any = self.connection()
        with database.wrap_database_errors, database.Database.Cursor(database.connection) as cursor:
            found: list[Row] = cursor.execute(sql, values, binary=True).fetchall()
        return found

    def fetch_each(self, statements: Iterable[Statement]) -> list[list[Row]]:
        """In pipeline mode: the server executes a statement while the next one is sent."""
        database: Any = self.connection()
        driver = database.connection
        with database.wrap_database_errors, driver.pipeline():
            cursors = [
                database.Database.Cursor(driver).execute(sql, values, binary=True)
                for sql, values in statements
            ]
            return [cursor.fetchall() for cursor in cursors]

    def with_rows(self, sql: str, types: ColumnTypes, columns: Columns) -> list[Statement]:
        """A column is one array parameter, or one value if all rows have the same one.

        A parameter for each value takes longer to send and to parse. The first column is always
        an array, because it gives the number of rows.
        """
        _, *others = columns
        constant = [name for name in others if _is_constant(columns[name])]
        arrays = [name for name in columns if name not in constant]
        table = f"SELECT u.*{''.join(f', %b::{types[name]}' for name in constant)}"
        table += f" FROM unnest({', '.join(_array_mark(types[name]) for name in arrays)}) AS u"
        values = [columns[name][0] for name in constant]
        values += [_array(types[name], columns[name]) for name in arrays]
        return [(f"WITH v ({', '.join(arrays + constant)}) AS ({table}) {sql}", values)]

    # --- times ------------------------------------------------------------------------------

    def to_database_time(self, moment: datetime) -> datetime:
        return moment

    def select_columns(self, names: Sequence[str]) -> list[str]:
        return list(names)

    def from_database_times(self, column: Sequence[Any]) -> Sequence[Any]:
        return column

    def seconds_between(self, earlier: str, later: str) -> str:
        return f"extract(epoch FROM {later} - {earlier})"

    def time_bucket(self, moment: str) -> str:
        return f"floor(extract(epoch FROM {moment}) / %s)"

    def greatest(self, *expressions: str) -> str:
        return f"greatest({', '.join(expressions)})"

    def clock_difference(self, now: datetime) -> timedelta:
        (at,) = self.execute("SELECT clock_timestamp()", []).fetchone()
        difference: timedelta = at - now
        return difference

    def file(self) -> Path | None:
        return None

    def return_free_space(self, *, rewrite: bool = False) -> int:
        """0: the server's autovacuum does it; `rewrite` runs VACUUM now, which blocks no writer."""
        if rewrite:
            self.execute("VACUUM (ANALYZE)", [])
        return 0

    def accepts_wrong_password(self) -> bool:
        database: Any = self.connection()
        driver, parameters = database.Database, database.get_connection_params()
        # The certificate of a client is a proof of identity, too.
        known = {name: parameters[name] for name in parameters if name not in _CERTIFICATE}
        try:
            driver.connect(**known | {"password": secrets.token_urlsafe(24)}).close()
        except driver.OperationalError:
            return False
        return True

    # --- locks ------------------------------------------------------------------------------

    def row_lock(self, table: str = "") -> str:
        return f" FOR NO KEY UPDATE OF {table}" if table else " FOR NO KEY UPDATE"

    def row_lock_skipping_locked(self, table: str) -> str:
        return f" FOR UPDATE OF {table} SKIP LOCKED"

    def lock_row(self, table: str, key: int) -> None:
        self.execute(f"SELECT 1 FROM {table} WHERE id = %s FOR NO KEY UPDATE", [key])  # noqa: S608

    def lock_number(self, kind: int, number: int) -> None:
        self.execute("SELECT pg_advisory_xact_lock(%s, %s)", [kind, number])

    # --- order of commits -------------------------------------------------------------------

    def writing_transactions(self, table: str) -> frozenset[str]:
        """A transaction that has taken an id holds a lock on the table until its commit."""
        return frozenset(name for (name,) in self.execute(_WRITERS, [table]))

    def newest_settled_id(self, table: str, after: int, now: datetime) -> int:
        """Rows younger than the oldest writing transaction are not settled: it may insert a row
        with a lower id."""
        (oldest,) = self.execute(_OLDEST_WRITER, []).fetchone()
        horizon = min(now, oldest or now) - SETTLE
        # Not the id before the first young row: that id may be the one still to be inserted.
        sql = f"""
            SELECT max(id) FROM {table} WHERE id > %s AND id < coalesce(
                (SELECT min(id) FROM {table} WHERE id > %s AND at > %s), 9223372036854775807)"""  # noqa: S608
        (settled,) = self.execute(sql, [after, after, horizon]).fetchone()
        return int(settled or after)


def _is_constant(column: Sequence[Any]) -> bool:
    """By identity: comparing times takes long."""
    return all(value is column[0] for value in column)


def _array_mark(kind: str) -> str:
    return f"{'%t' if kind == 'bigint' else '%b'}::{kind}[]"


def _array(kind: str, column: Sequence[Any]) -> Any:
    """Whole numbers as an array literal: the driver would look at each of them."""
    if kind != "bigint":
        return list(column)
    return f"{{{','.join(map(str, column)).replace('None', 'NULL')}}}"
