"""Many new or changed rows at once, with long texts and bytes in them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agents_app.rows import fetch, on_sqlite, run, run_many, stamp

Rows = Sequence[Sequence[Any]]
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
        found += run(f"{into} VALUES {marks} {end}", [v for row in some for v in row]).fetchall()
    return found


def _by_column(
    into: str, end: str, columns: Mapping[str, str], rows: Rows
) -> list[tuple[Any, ...]]:
    return _in_binary(f"{into} SELECT * FROM unnest({_arrays(columns)}) {end}", rows)  # noqa: S608


def update_many(table: str, columns: Mapping[str, str], rows: Rows) -> set[int]:
    """Other values for each row; the first two are its id and the revision it was read at.

    Who finds another revision has come too late. Returns the ids of those that were changed.
    """
    if not rows:
        return set()
    return _change_each(table, columns, rows) if on_sqlite() else _change_all(table, columns, rows)


def _change_each(table: str, columns: Mapping[str, str], rows: Rows) -> set[int]:
    """Nobody else writes while this transaction does, so who may be changed is known before.

    One prepared statement for all of them: as JSON in one statement they take five times as long.
    """
    _, _, *names = columns
    ids = json.dumps([row[0] for row in rows])
    now = run(
        f"SELECT id, revision FROM {table} WHERE id IN (SELECT value FROM json_each(%s))",  # noqa: S608
        [ids],
    )
    revisions = dict(now.fetchall())
    still = [row for row in rows if revisions.get(row[0]) == row[1]]
    changes = ", ".join(f"{name} = %s" for name in names)
    run_many(
        f"UPDATE {table} SET {changes}, revision = revision + 1 WHERE id = %s",  # noqa: S608
        _with_stamps(columns, still),
    )
    return {row[0] for row in still}


def _with_stamps(columns: Mapping[str, str], rows: Rows) -> list[list[Any]]:
    """The values and then the id, as the statement has them. Of many rows most times are equal."""
    times = [at for at, kind in enumerate(columns.values()) if kind == "timestamptz"]
    stamps = {at: stamp(at) for at in {row[at] for row in rows for at in times} if at}
    stamps[None] = None
    told = [list(row) for row in rows]
    for row in told:
        for at in times:
            row[at] = stamps[row[at]]
    return [[*row[2:], row[0]] for row in told]


def _change_all(table: str, columns: Mapping[str, str], rows: Rows) -> set[int]:
    _, _, *names = columns
    changes = ", ".join(f"{name} = v.{name}" for name in names)
    sql = (
        f"UPDATE {table} SET {changes}, revision = {table}.revision + 1"  # noqa: S608
        f" FROM unnest({_arrays(columns)}) AS v ({', '.join(columns)})"
        f" WHERE {table}.id = v.id AND {table}.revision = v.revision RETURNING {table}.id"
    )
    return {key for (key,) in _in_binary(sql, rows)}


def _arrays(columns: Mapping[str, str]) -> str:
    """PostgreSQL takes a whole column as one value."""
    return ", ".join(f"%b::{kind}[]" for kind in columns.values())


def _in_binary(sql: str, rows: Rows) -> list[tuple[Any, ...]]:
    """Which Django's own cursor does not do: quoting long texts takes ten times as long."""
    return fetch(sql, [list(column) for column in zip(*rows, strict=True)])
