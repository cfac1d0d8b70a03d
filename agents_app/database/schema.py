"""The schema of the database compared with the migrations that this process was started with.

Read with one short statement, because each process compares them every few seconds.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.db import DatabaseError, connection

from agents_app.conf import command_line
from agents_app.database.sql import fetch_column

SCHEMA_CHECK_SECONDS = 5.0
MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"
_APPLIED = "SELECT name FROM django_migrations WHERE app = 'agents_app' ORDER BY id"


@dataclass(frozen=True, slots=True)
class Schema:
    """The names of the migrations of the code and of the database, each in order."""

    of_code: tuple[str, ...]
    of_database: tuple[str, ...]

    @property
    def unknown(self) -> tuple[str, ...]:
        """Applied by a newer version."""
        return tuple(name for name in self.of_database if name not in self.of_code)

    @property
    def pending(self) -> tuple[str, ...]:
        return tuple(name for name in self.of_code if name not in self.of_database)

    @property
    def version(self) -> str:
        """The last migration of the database; empty: there is no table."""
        return max(self.of_database, default="")

    @property
    def problem(self) -> str:
        """Empty if code and database agree, else what is wrong and what to do."""
        if self.unknown:
            return (
                f"this process is older than the schema of the database ({self.version}): "
                "it starts no further work. Start it again with the new version."
            )
        if self.pending:
            last = self.version or "none"
            return (
                f"the database has the schema {last}, this version needs {self.of_code[-1]}: "
                f"run {command_line('migrate')}"
            )
        return ""


@cache
def migrations_of_code() -> tuple[str, ...]:
    """Read once: files that an upgrade adds are not those that this process was started with."""
    return tuple(sorted(path.stem for path in MIGRATIONS.glob("[0-9]*.py")))


def read_schema() -> Schema:
    return Schema(migrations_of_code(), tuple(fetch_column(_APPLIED, [])))


def has_tables() -> bool:
    """Whether Drover has been started with the database; unreachable, it raises DatabaseError."""
    return "django_migrations" in connection.introspection.table_names()


def schema_problem() -> str:
    """The problem of the schema; that of a database without tables is that migrations are missing.

    An unreachable database raises DatabaseError.
    """
    try:
        return read_schema().problem
    except DatabaseError as error:
        if "django_migrations" in str(error):
            return Schema(migrations_of_code(), ()).problem
        raise
