"""Many new or changed rows at once, with long texts and bytes in them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agents_app.database.sql import (
    execute,
    execute_many,
    fetch_all,
    fetch_each,
    on_sqlite,
    to_database_time,
)

Row = Sequence[Any]
Rows = Sequence[Row]
Columns = Mapping[str, Sequence[Any]]
_OF_ALL = ("id", "revision")
# A statement takes at most 32,766 values on SQLite.
ROWS_IN_ONE_INSERT = 500


def insert_many(
    table: str, columns: Mapping[str, str], rows: Rows, returning: str
) -> list[tuple[Any, ...]]:
    """Rows that break a unique constraint are there already: they stay, and are not returned.

    The columns come with their types, for PostgreSQL.
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
        found += execute(
            f"{into} VALUES {marks} {end}", [v for row in some for v in row]
        ).fetchall()
    return found


def _by_column(
    into: str, end: str, columns: Mapping[str, str], rows: Rows
) -> list[tuple[Any, ...]]:
    sql = f"{into} SELECT * FROM unnest({_arrays(columns)}) {end}"  # noqa: S608
    # Django's own cursor does it as text: quoting long ones takes ten times as long.
    arrays = map(_array, columns.values(), zip(*rows, strict=True))
    return fetch_all(sql, list(arrays))


def update_many(
    table: str, columns: Mapping[str, str], groups: Iterable[Sequence[tuple[Row, Row]]]
) -> set[int]:
    """Rows as they shall be, each with what was read; the first two values are id and revision.

    Who finds another revision has come too late. Returns the ids of those that were changed.
    Rows of one group have much in common, or all is said row by row.
    """
    changes = [_changes(columns, group) for group in groups if group]
    if on_sqlite():
        return {key for each in changes for key in _change_each(table, columns, each)}
    statements = (_statement(table, columns, each) for each in changes)
    return {key for found in fetch_each(statements) for (key,) in found}


def _changes(columns: Mapping[str, str], group: Sequence[tuple[Row, Row]]) -> Columns:
    """By column; one in which nothing is new would cost as much as any other."""
    new, read = zip(*group, strict=True)
    both = zip(columns, zip(*new, strict=True), zip(*read, strict=True), strict=True)
    return {name: after for name, after, before in both if name in _OF_ALL or after != before}


def _change_each(table: str, kinds: Mapping[str, str], changes: Columns) -> set[int]:
    """Nobody else writes while this transaction does, so who may be changed is known before.

    One prepared statement for all of them: as JSON in one statement they take five times as long.
    """
    ids, revisions, *values = (_stored(kinds[name], column) for name, column in changes.items())
    _, _, *names = changes
    # Those between them are not meant, but quicker read than left out.
    now = execute(
        f"SELECT id, revision FROM {table} WHERE id BETWEEN %s AND %s",  # noqa: S608
        [min(ids), max(ids)],
    )
    still = set(now.fetchall()) & set(zip(ids, revisions, strict=True))
    rows = zip(*values, ids, revisions, strict=True)
    execute_many(
        f"UPDATE {table} SET {_set(names)}, revision = revision + 1 WHERE id = %s",  # noqa: S608
        [row[:-1] for row in rows if row[-2:] in still],
    )
    return {key for key, _ in still}


def _stored(kind: str, column: Sequence[Any]) -> Sequence[Any]:
    """Of many rows most times are equal."""
    if kind != "timestamptz":
        return column
    stamps = {at: at and to_database_time(at) for at in set(column)}
    return [stamps[at] for at in column]


def _set(names: Sequence[str]) -> str:
    return ", ".join(f"{name} = %s" for name in names)


def _statement(table: str, kinds: Mapping[str, str], changes: Columns) -> tuple[str, list[Any]]:
    """What all rows get is said once: a column of it would be packed and unpacked row by row."""
    same = [name for name, new in changes.items() if name not in _OF_ALL and _is_one(new)]
    each = {name: kinds[name] for name in changes if name not in same}
    taken = [
        f"{name} = " + (f"%b::{kinds[name]}" if name in same else f"v.{name}")
        for name in (*same, *(name for name in each if name not in _OF_ALL))
    ]
    sql = (
        f"UPDATE {table} SET {', '.join(taken)}, revision = {table}.revision + 1"  # noqa: S608
        f" FROM unnest({_arrays(each)}) AS v ({', '.join(each)})"
        f" WHERE {table}.id = v.id AND {table}.revision = v.revision RETURNING {table}.id"
    )
    values = [changes[name][0] for name in same]
    return sql, values + [_array(kind, changes[name]) for name, kind in each.items()]


def _is_one(column: Sequence[Any]) -> bool:
    """By identity: times take long to compare."""
    return all(value is column[0] for value in column)


def _arrays(columns: Mapping[str, str]) -> str:
    """PostgreSQL takes a whole column as one value."""
    marks = ("%t" if kind == "bigint" else "%b" for kind in columns.values())
    pairs = zip(marks, columns.values(), strict=True)
    return ", ".join(f"{mark}::{kind}[]" for mark, kind in pairs)


def _array(kind: str, column: Sequence[Any]) -> Any:
    """Of whole numbers as PostgreSQL writes it, which the driver would look at one by one."""
    return f"{{{','.join(map(str, column))}}}" if kind == "bigint" else list(column)
