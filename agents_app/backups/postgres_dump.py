"""A PostgreSQL database: dumped by pg_dump, restored by pg_restore and psql in one transaction."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from agents_app.backups.sqlite_copy import FORGET_PROCESSES
from agents_app.errors import ConfigError, Refused

_INSTALLED = Path("/usr/lib/postgresql")
# Parameters of DATABASE_URL that the programs read from variables.
_VARIABLES = {
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "connect_timeout": "PGCONNECT_TIMEOUT",
}
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"


def find_program(name: str) -> Path:
    if found := shutil.which(name):
        return Path(found)
    installed = [path for path in _INSTALLED.glob(f"*/bin/{name}") if path.parts[-3].isdigit()]
    if installed:
        return max(installed, key=lambda path: int(path.parts[-3]))
    raise ConfigError(f"{name} is not on PATH: install the client programs of PostgreSQL")


def client_environment(database: Mapping[str, Any]) -> dict[str, str]:
    """The variables that name server, user and password: an argument would be visible to others.

    Without a password in DATABASE_URL the programs read PGPASSWORD or PGPASSFILE.
    """
    values = {
        "PGHOST": database["HOST"],
        "PGPORT": database["PORT"],
        "PGUSER": database["USER"],
        "PGPASSWORD": database["PASSWORD"],
        "PGDATABASE": database["NAME"],
    }
    options = database["OPTIONS"]
    values |= {variable: options.get(name) for name, variable in _VARIABLES.items()}
    # A dump is idle between the statements of its transaction.
    values["PGOPTIONS"] = "-c idle_in_transaction_session_timeout=0"
    return os.environ | {name: str(value) for name, value in values.items() if value}


def connect(database: Mapping[str, Any]) -> psycopg.Connection[Any]:
    names = {"HOST": "host", "PORT": "port", "USER": "user", "PASSWORD": "password"}
    parameters = {name: database[key] for key, name in names.items() if database[key]}
    options = {name: database["OPTIONS"].get(name) for name in _VARIABLES}
    parameters |= {name: value for name, value in options.items() if value}
    quiet = "-c idle_in_transaction_session_timeout=0"
    return psycopg.connect(dbname=database["NAME"], options=quiet, **parameters)


def count_rows(connection: psycopg.Connection[Any]) -> dict[str, int]:
    tables = [name for (name,) in connection.execute(_TABLES).fetchall()]
    return {table: _count(connection, table) for table in tables}


def read_migrations(connection: psycopg.Connection[Any]) -> list[str]:
    found = connection.execute(
        "SELECT name FROM django_migrations WHERE app = 'agents_app' ORDER BY id"
    )
    return [name for (name,) in found]


def dump_database(database: Mapping[str, Any], target: Path) -> tuple[dict[str, int], list[str]]:
    """Counts and migrations of the dump: all are read in the same snapshot."""
    with connect(database) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        row = connection.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        arguments = ["--format=custom", f"--snapshot={row[0]}", f"--file={target}"]
        _run("pg_dump", [*arguments, "--no-owner", "--no-privileges"], database)
        return count_rows(connection), read_migrations(connection)


def write_script(dump: Path, script: Path, database: Mapping[str, Any]) -> None:
    """The dump as SQL, which also proves that pg_restore can read all of it."""
    _run("pg_restore", ["--no-owner", "--no-privileges", f"--file={script}", str(dump)], database)


def replace_database(
    database: Mapping[str, Any], script: Path, counts: Mapping[str, int], known: set[str]
) -> None:
    """Drop Drover's tables and execute the script in one transaction: all or nothing.

    `known` are the tables of this version, which may not exist in the backup.
    """
    before, after = script.with_name("before.sql"), script.with_name("after.sql")
    with connect(database) as connection:
        existing = {name for (name,) in connection.execute(_TABLES).fetchall()}
        old = sorted(existing & (known | counts.keys()))
        drops = [
            sql.SQL("DROP TABLE IF EXISTS {} CASCADE;\n").format(sql.Identifier(table))
            for table in old
        ]
        before.write_text(sql.Composed(drops).as_string(connection))
    after.write_text(";\n".join(["SET search_path = public", *FORGET_PROCESSES, ""]))
    files = [f"--file={path}" for path in (before, script, after)]
    options = ["-X", "-q", "--single-transaction", "--set=ON_ERROR_STOP=1", "--output=/dev/null"]
    _run("psql", [*options, *files], database)


def _run(program: str, arguments: Sequence[str], database: Mapping[str, Any]) -> None:
    argv = [str(find_program(program)), *arguments]
    done = subprocess.run(
        argv, env=client_environment(database), capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = " ".join(done.stderr.split())[:500]
        raise Refused(f"{program} failed: {reason}")


def _count(connection: psycopg.Connection[Any], table: str) -> int:
    query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
    row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])
