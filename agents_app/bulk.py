"""Many new or changed rows in one statement, with long texts and bytes in them."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

from agents_app.rows import on_sqlite, run, stamp

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


def update_many(
    table: str, columns: Mapping[str, str], rows: Rows, revisions: Sequence[tuple[int, int]]
) -> set[int]:
    """Other values for each row, in one statement, however many there are.

    Each row comes with its id and the revision it was read at; who finds another revision has come
    too late. Returns the ids of those that were changed.
    """
    if not rows:
        return set()
    types = {"id": "bigint", "was": "bigint", **columns}
    changes = ", ".join(f"{name} = v.{name}" for name in columns)
    sql = (
        f"UPDATE {table} SET {changes}, revision = {table}.revision + 1 FROM {_as_table(types)}"  # noqa: S608
        f" WHERE {table}.id = v.id AND {table}.revision = v.was RETURNING {table}.id"
    )
    values = [[*key, *map(_told, row)] for key, row in zip(revisions, rows, strict=True)]
    return {key for (key,) in run(sql, [json.dumps(values)]).fetchall()}


def _told(value: Any) -> Any:
    return _moment(value) if isinstance(value, datetime) else value


@lru_cache(maxsize=4096)
def _moment(value: datetime) -> str:
    """Of many rows most times are the same."""
    return str(stamp(value))


def _as_table(types: Mapping[str, str]) -> str:
    """JSON as rows, which both databases can read; one value, whatever its length."""
    if on_sqlite():
        fields = ", ".join(f"value ->> {at} AS {name}" for at, name in enumerate(types))
        return f"(SELECT {fields} FROM json_each(%s)) AS v"  # noqa: S608
    typed = enumerate(types.items())
    fields = ", ".join(f"(value ->> {at})::{kind} AS {name}" for at, (name, kind) in typed)
    return f"(SELECT {fields} FROM jsonb_array_elements(%s::jsonb)) AS v"  # noqa: S608
