"""Plain SQL for the hot path: read one row, or move one row from a state to another.

Django's cursors cost more than the statements that lifecycle.py sends through them, so this goes
to the driver's connection, which is the same one that Django's transactions are on.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

# Behind a time that SQLite has as a text: read so, it needs nothing but `fromisoformat`.
UTC_SUFFIX = " || '+00:00'"


@lru_cache(maxsize=1)
def on_sqlite() -> bool:
    return connections[DEFAULT_DB_ALIAS].vendor == "sqlite"


def to_database_time(moment: datetime) -> Any:
    """A time as the database driver wants it in plain SQL."""
    # As Django writes it: in UTC without saying so.
    return moment.astimezone(UTC).isoformat(" ")[:-6] if on_sqlite() else moment


def from_database_time(value: Any) -> datetime:
    """And back: a time as it comes from the database driver."""
    # On SQLite a column is read as a time already, what was reckoned is not.
    read: datetime = datetime.fromisoformat(value) if isinstance(value, str) else value
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def select_columns(columns: Sequence[str]) -> list[str]:
    """The same columns for plain SQL, with times that need nothing but `fromisoformat`: what turns
    SQLite's times into Python's by itself takes ten times as long."""
    times = [on_sqlite() and name.endswith(("_at", "_until")) for name in columns]
    return [
        f"{name}{UTC_SUFFIX}" if time else name for name, time in zip(columns, times, strict=True)
    ]


def from_database_times(column: Sequence[Any]) -> Sequence[Any]:
    """Times that were asked for so; in a column of many rows most of them are equal."""
    if not on_sqlite():
        return column
    read = {text: text and datetime.fromisoformat(text) for text in set(column)}
    return [read[text] for text in column]


def execute(sql: str, values: Sequence[Any] | Mapping[str, Any]) -> Any:
    """The driver's own cursor; its errors are Django's."""
    database = connections[DEFAULT_DB_ALIAS]
    if database.connection is None:
        database.ensure_connection()
    driver: Any = database.connection
    with database.wrap_database_errors:
        return driver.execute(_dialect(sql), values)


def fetch_all(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """All rows at once; for many of them, with times in them, quicker than `run`.

    From PostgreSQL they come in binary: Django reads times as texts, in Python."""
    found: list[tuple[Any, ...]]
    if on_sqlite():
        found = execute(sql, values).fetchall()
        return found
    database: Any = connections[DEFAULT_DB_ALIAS]
    database.ensure_connection()
    with database.wrap_database_errors, database.Database.Cursor(database.connection) as cursor:
        found = cursor.execute(sql, values, binary=True).fetchall()
    return found


def fetch_each(queries: Iterable[tuple[str, Sequence[Any]]]) -> list[list[tuple[Any, ...]]]:
    """Of several statements, in their order: PostgreSQL works on one of them while the next one is
    written and the answer to the last one is read."""
    if on_sqlite():
        return [fetch_all(sql, values) for sql, values in queries]
    database: Any = connections[DEFAULT_DB_ALIAS]
    database.ensure_connection()
    driver = database.connection
    with database.wrap_database_errors, driver.pipeline():
        asked = [
            database.Database.Cursor(driver).execute(sql, values, binary=True)
            for sql, values in queries
        ]
        return [cursor.fetchall() for cursor in asked]


def execute_many(sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """One statement for each row, prepared once; SQLite's way, in a transaction that is open."""
    database = connections[DEFAULT_DB_ALIAS]
    driver: Any = database.connection
    with database.wrap_database_errors:
        driver.executemany(_dialect(sql), rows)


def fetch_one(sql: str, values: Sequence[Any]) -> tuple[Any, ...] | None:
    row: tuple[Any, ...] | None = execute(sql, values).fetchone()
    return row


def fetch_column(sql: str, values: Sequence[Any]) -> list[Any]:
    return [row[0] for row in execute(sql, values).fetchall()]


def move_state(
    table: str, key: int, old: str, new: str, columns: dict[str, Any], owner: int | None = None
) -> bool:
    """True if the row was in the old state (and, where an owner is named, still belonged to it)."""
    values = [str(new), *columns.values(), key, str(old)]
    if owner is not None:
        values.append(owner)
    return bool(execute(_move_sql(table, tuple(columns), owner is not None), values).rowcount == 1)


@lru_cache(maxsize=256)
def _dialect(sql: str) -> str:
    return sql.replace("%s", "?") if on_sqlite() else sql


@lru_cache(maxsize=64)
def _move_sql(table: str, columns: tuple[str, ...], owned: bool) -> str:
    assignments = "".join(f", {name} = %s" for name in columns)
    owner = " AND worker_id = %s" if owned else ""
    return f"UPDATE {table} SET state = %s{assignments} WHERE id = %s AND state = %s{owner}"  # noqa: S608
