"""Many new rows in one statement, with long texts and bytes in them."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

from agents_app.rows import on_sqlite, run

Rows = Sequence[Sequence[Any]]
# A statement takes at most 32,766 values on SQLite.
ROWS_IN_ONE_INSERT = 500


def insert_many(
    table: str, columns: Mapping[str, str], rows: Rows, returning: str
) -> list[tuple[Any, ...]]:
    """Rows that break a unique constraint are there already: they stay, and are not returned.

    The columns come with their types, for PostgreSQL, which takes a whole column as one value.
    """
    if not rows:
        return []
    into = f"INSERT INTO {table} ({', '.join(columns)})"
    end = f"ON CONFLICT DO NOTHING RETURNING {returning}"
    return _by_row(into, end, rows) if on_sqlite() else _by_column(into, end, columns, rows)


def _by_row(into: str, end: str, rows: Rows) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for start in range(0, len(rows), ROWS_IN_ONE_INSERT):
        some = rows[start : start + ROWS_IN_ONE_INSERT]
        marks = ", ".join([f"({', '.join(['%s'] * len(some[0]))})"] * len(some))
        found += run(f"{into} VALUES {marks} {end}", [v for row in some for v in row]).fetchall()
    return found


def _by_column(
    into: str, end: str, columns: Mapping[str, str], rows: Rows
) -> list[tuple[Any, ...]]:
    arrays = ", ".join(f"%b::{kind}[]" for kind in columns.values())
    database: Any = connections[DEFAULT_DB_ALIAS]
    database.ensure_connection()
    # In binary, which Django's own cursor does not do: quoting long texts takes ten times as long.
    with database.wrap_database_errors, database.Database.Cursor(database.connection) as cursor:
        sql = f"{into} SELECT * FROM unnest({arrays}) {end}"  # noqa: S608
        cursor.execute(sql, [list(column) for column in zip(*rows, strict=True)])
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found
