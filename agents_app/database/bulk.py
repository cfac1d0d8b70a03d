"""Inserting and updating many rows in one statement.

Django's bulk_create does not tell which rows were new. Its bulk_update cannot compare revisions,
and for 1,000 rules it takes 3.0 s instead of 0.05 s on SQLite and 4.2 s instead of 0.06 s on
PostgreSQL (medians of 7 on a busy two-core machine).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agents_app.database.engine import Columns, ColumnTypes, Row
from agents_app.database.sql import ENGINE, fetch_each

Values = Sequence[Any]
_KEY = ("id", "revision")


def insert_many(
    table: str, types: ColumnTypes, rows: Sequence[Values], returning: str
) -> list[Row]:
    """Insert rows, with values in the order of `types`; times are datetimes.

    A row that breaks a unique constraint exists already: it stays as it is and is not returned.
    """
    if not rows:
        return []
    sql = (
        f"INSERT INTO {table} ({', '.join(types)}) SELECT {_columns_of_v(types)} FROM v"  # noqa: S608
        f" WHERE true ON CONFLICT DO NOTHING RETURNING {returning}"
    )
    columns = dict(zip(types, zip(*rows, strict=True), strict=True))
    return [row for found in fetch_each(ENGINE.with_rows(sql, types, columns)) for row in found]


def update_many(
    table: str, types: ColumnTypes, groups: Iterable[Sequence[tuple[Values, Values]]]
) -> set[int]:
    """Update rows that still have the revision with which they were read; returns their ids.

    Each row is given as (new values, values as read), both beginning with id and revision. The
    rows of a group are updated together: only columns in which one of them changes are written.
    """
    statements = []
    for group in groups:
        if group:
            changes = _changed_columns(types, group)
            statements += ENGINE.with_rows(_update_sql(table, changes), types, changes)
    return {key for found in fetch_each(statements) for (key,) in found}


def _changed_columns(types: ColumnTypes, group: Sequence[tuple[Values, Values]]) -> Columns:
    new, read = zip(*group, strict=True)
    both = zip(types, zip(*new, strict=True), zip(*read, strict=True), strict=True)
    return {name: after for name, after, before in both if name in _KEY or after != before}


def _update_sql(table: str, changes: Mapping[str, Any]) -> str:
    assignments = "".join(f"{name} = v.{name}, " for name in changes if name not in _KEY)
    return (
        f"UPDATE {table} SET {assignments}revision = {table}.revision + 1 FROM v"  # noqa: S608
        f" WHERE {table}.id = v.id AND {table}.revision = v.revision RETURNING {table}.id"
    )


def _columns_of_v(names: Iterable[str]) -> str:
    return ", ".join(f"v.{name}" for name in names)
