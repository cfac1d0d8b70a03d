"""Plain SQL, bulk statements and transactions on SQLite and PostgreSQL.

Belongs here: everything that depends on the database engine.
Does not belong here: tables and rules about them.
"""

from agents_app.database.bulk import insert_many, update_many
from agents_app.database.sql import (
    ITS_ZONE,
    column,
    fetch,
    fetch_each,
    moment,
    moments,
    move,
    on_sqlite,
    one,
    quick,
    run,
    stamp,
)
from agents_app.database.transactions import in_transaction

__all__ = [
    "ITS_ZONE",
    "column",
    "fetch",
    "fetch_each",
    "in_transaction",
    "insert_many",
    "moment",
    "moments",
    "move",
    "on_sqlite",
    "one",
    "quick",
    "run",
    "stamp",
    "update_many",
]
