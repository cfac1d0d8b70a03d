"""Plain SQL, bulk statements and transactions on SQLite and PostgreSQL.

Belongs here: everything that depends on the database engine.
Does not belong here: tables and rules about them.
"""

from agents_app.database.bulk import insert_many, update_many
from agents_app.database.schema import (
    SCHEMA_CHECK_SECONDS,
    Schema,
    has_tables,
    migrations_of_code,
    read_schema,
    schema_problem,
)
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
    "SCHEMA_CHECK_SECONDS",
    "UNAVAILABLE",
    "GroupCommit",
    "Outcome",
    "Schema",
    "execute",
    "fetch_all",
    "fetch_column",
    "fetch_each",
    "fetch_one",
    "from_database_time",
    "from_database_times",
    "has_tables",
    "in_transaction",
    "insert_many",
    "migrations_of_code",
    "move_state",
    "read_schema",
    "repeat_after_lost_connection",
    "schema_problem",
    "select_columns",
    "to_database_time",
    "update_many",
]
