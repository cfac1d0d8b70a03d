"""The engine of this process, and plain SQL through it for the hot path.

Plain SQL goes to the driver's connection, which is the one that Django's transactions are on.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS

from agents_app.database.engine import Engine
from agents_app.database.postgres import PostgresEngine
from agents_app.database.sqlite import SqliteEngine

ENGINES: dict[str, type[Engine]] = {
    "django.db.backends.sqlite3": SqliteEngine,
    "django.db.backends.postgresql": PostgresEngine,
}
# Chosen once, so that SQL which depends on it can be put together when a module is imported.
ENGINE = ENGINES[settings.DATABASES[DEFAULT_DB_ALIAS]["ENGINE"]](DEFAULT_DB_ALIAS)

execute = ENGINE.execute
fetch_all = ENGINE.fetch_all
fetch_each = ENGINE.fetch_each
to_database_time = ENGINE.to_database_time
from_database_time = ENGINE.from_database_time
select_columns = ENGINE.select_columns
from_database_times = ENGINE.from_database_times


def fetch_one(sql: str, values: Sequence[Any]) -> tuple[Any, ...] | None:
    row: tuple[Any, ...] | None = execute(sql, values).fetchone()
    return row


def fetch_column(sql: str, values: Sequence[Any]) -> list[Any]:
    return [row[0] for row in execute(sql, values).fetchall()]


def move_state(
    table: str, key: int, old: str, new: str, columns: dict[str, Any], owner: int | None = None
) -> bool:
    """Update the row if it is in the old state and, where given, belongs to the worker `owner`.

    False: the row was in another state or of another owner, and nothing has changed.
    """
    values = [str(new), *columns.values(), key, str(old)]
    if owner is not None:
        values.append(owner)
    return bool(execute(_move_sql(table, tuple(columns), owner is not None), values).rowcount == 1)


@lru_cache(maxsize=64)
def _move_sql(table: str, columns: tuple[str, ...], owned: bool) -> str:
    assignments = "".join(f", {name} = %s" for name in columns)
    owner = " AND worker_id = %s" if owned else ""
    return f"UPDATE {table} SET state = %s{assignments} WHERE id = %s AND state = %s{owner}"  # noqa: S608
