"""Plain SQL, bulk statements and transactions on SQLite and PostgreSQL.

Belongs here: everything that depends on the database engine.
Does not belong here: tables and rules about them.
"""

from agents_app.database.bulk import insert_many, update_many
from agents_app.database.sql import (
    ENGINE,
    execute,
    fetch_all,
    fetch_column,
    fetch_each,
    fetch_one,
    from_database_time,
    from_database_times,
    move_state,
    select_columns,
    to_database_time,
)
from agents_app.database.transactions import (
    UNAVAILABLE,
    GroupCommit,
    Outcome,
    in_transaction,
    repeat_after_lost_connection,
)

__all__ = [
    "ENGINE",
    "UNAVAILABLE",
    "GroupCommit",
    "Outcome",
    "execute",
    "fetch_all",
    "fetch_column",
    "fetch_each",
    "fetch_one",
    "from_database_time",
    "from_database_times",
    "in_transaction",
    "insert_many",
    "move_state",
    "repeat_after_lost_connection",
    "select_columns",
    "to_database_time",
    "update_many",
]
