"""Plain SQL for the hot path: read one row, or move one row from a state to another."""

from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import connection


def stamp(moment: datetime) -> Any:
    """A time as the database driver wants it in plain SQL."""
    return connection.ops.adapt_datetimefield_value(moment)


def one(sql: str, values: list[Any]) -> tuple[Any, ...] | None:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        row: tuple[Any, ...] | None = cursor.fetchone()
        return row


def column(sql: str, values: list[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return [row[0] for row in cursor.fetchall()]


def move(
    table: str, key: int, old: str, new: str, columns: dict[str, Any], owner: int | None = None
) -> bool:
    """True if the row was in the old state (and, where an owner is named, still belonged to it)."""
    values = [str(new), *columns.values(), key, str(old)]
    if owner is not None:
        values.append(owner)
    with connection.cursor() as cursor:
        cursor.execute(_move_sql(table, tuple(columns), owner is not None), values)
        return bool(cursor.rowcount == 1)


@lru_cache(maxsize=64)
def _move_sql(table: str, columns: tuple[str, ...], owned: bool) -> str:
    assignments = "".join(f", {name} = %s" for name in columns)
    owner = " AND worker_id = %s" if owned else ""
    return f"UPDATE {table} SET state = %s{assignments} WHERE id = %s AND state = %s{owner}"  # noqa: S608
