"""Copies a SQLite database with all its rows and ids to an empty PostgreSQL database."""

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
from django.core.management import call_command
from django.db import DatabaseError, connection, connections
from psycopg import sql

from agents_app.backups import postgres_dump, sqlite_copy
from agents_app.conf import Conf, database_settings
from agents_app.database import ENGINE, read_schema
from agents_app.errors import ConfigError, Refused
from agents_app.installation import hold_lock

TARGET = "move_target"
MIGRATIONS_TABLE = "django_migrations"
Report = Callable[[str, int], None]
Database = Mapping[str, Any]


def move_to_postgres(conf: Conf, url: str, report: Report) -> dict[str, int]:
    """The number of rows by table; `report` is called after each table.

    Drover must not run. A failed move leaves the target without tables.
    """
    file = ENGINE.file()
    if file is None:
        raise Refused("DATABASE_URL names PostgreSQL already: nothing to move")
    target = _target_settings(url)
    if problem := read_schema().problem:
        raise Refused(f"{problem}; nothing was changed")
    with hold_lock(conf.data), _reachable(target):
        _refuse_filled(target)
        try:
            _create_tables(target)
            return _copy_all(file, target, report)
        except BaseException:
            _drop_tables(target)
            raise


def _target_settings(url: str) -> dict[str, Any]:
    try:
        target = database_settings(url)
    except ConfigError as error:
        raise Refused(str(error).replace("DATABASE_URL", "the URL")) from None
    if "postgresql" not in target["ENGINE"]:
        raise Refused("the URL names SQLite: expected postgresql://user:password@host:port/name")
    return target


@contextlib.contextmanager
def _reachable(target: Database) -> Iterator[None]:
    try:
        with postgres_dump.connect(target):
            pass
    except psycopg.Error as error:
        reason = " ".join(str(error).split())
        raise Refused(f"the PostgreSQL database cannot be opened: {reason}") from None
    try:
        yield
    except (psycopg.Error, DatabaseError, sqlite3.Error) as error:
        reason = " ".join(str(error).split())[:500]
        raise Refused(f"the move failed, and the target is empty again: {reason}") from error


def _known_tables() -> set[str]:
    return {*connection.introspection.django_table_names(include_views=False), MIGRATIONS_TABLE}


def _refuse_filled(target: Database) -> None:
    with postgres_dump.connect(target) as database:
        found = sorted(_known_tables() & postgres_dump.count_rows(database).keys())
        if not found:
            return
        applied = postgres_dump.read_migrations(database) if MIGRATIONS_TABLE in found else []
    unknown = [name for name in applied if name not in read_schema().of_code]
    newer = f", of a newer version of Drover ({unknown[-1]})" if unknown else ""
    raise Refused(
        f"the PostgreSQL database is not empty: it has {len(found)} tables of Drover{newer}. "
        "Create an empty one with createdb; nothing was changed"
    )


def _create_tables(target: Database) -> None:
    defaults = {"ATOMIC_REQUESTS": False, "AUTOCOMMIT": True, "CONN_MAX_AGE": 0, "TIME_ZONE": None}
    test = {"CHARSET": None, "COLLATION": None, "NAME": None, "MIRROR": None, "MIGRATE": True}
    connections.databases[TARGET] = {**defaults, "TEST": test, **target}
    try:
        call_command("migrate", database=TARGET, interactive=False, verbosity=0)
    finally:
        connections[TARGET].close()
        del connections[TARGET]
        del connections.databases[TARGET]


def _drop_tables(target: Database) -> None:
    with contextlib.suppress(psycopg.Error), postgres_dump.connect(target) as database:
        for table in sorted(_known_tables()):
            query = sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(sql.Identifier(table))
            database.execute(query)


# --- rows -----------------------------------------------------------------------------------


def _copy_all(file: Path, target: Database, report: Report) -> dict[str, int]:
    """In one transaction: foreign keys are checked at its end."""
    counts = {
        table: count
        for table, count in sqlite_copy.count_rows(file).items()
        if table in _known_tables() - {MIGRATIONS_TABLE}
    }
    with sqlite_copy.open_sqlite(file) as source, postgres_dump.connect(target) as database:
        source.text_factory = lambda data: data.decode("utf-8", "replace").replace("\0", "")
        # Rows that migrations have created are those of the source, with other ids.
        names = sql.SQL(", ").join(map(sql.Identifier, counts))
        database.execute(sql.SQL("TRUNCATE {} CASCADE").format(names))
        for table, count in counts.items():
            _copy_table(source, database, table)
            report(table, count)
        _set_sequences(source, database)
        copied = postgres_dump.count_rows(database)
        if different := [table for table in counts if copied[table] != counts[table]]:
            table = different[0]
            raise Refused(
                f"{table} has {counts[table]} rows in SQLite and {copied[table]} in PostgreSQL: "
                "nothing was moved. Stop all processes that use the database"
            )
    return counts


def _copy_table(source: sqlite3.Connection, database: psycopg.Connection[Any], table: str) -> None:
    types = dict(
        database.execute(
            "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = current_schema() AND table_name = %s",
            [table],
        ).fetchall()
    )
    rows = source.execute(f'SELECT * FROM "{table}"')  # noqa: S608
    names = [column[0] for column in rows.description]
    converters = [_CONVERTERS.get(types[name], _unchanged) for name in names]
    copy_in = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, names))
    )
    with database.cursor() as cursor, cursor.copy(copy_in) as copy:
        for row in rows:
            copy.write_row(
                [
                    None if value is None else convert(value)
                    for convert, value in zip(converters, row, strict=True)
                ]
            )


def _set_sequences(source: sqlite3.Connection, database: psycopg.Connection[Any]) -> None:
    """The next id is above every id that was ever used, also of rows that were deleted."""
    for table, last in source.execute("SELECT name, seq FROM sqlite_sequence").fetchall():
        if table not in _known_tables() - {MIGRATIONS_TABLE} or not last:
            continue
        database.execute("SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)", [table, last])


def _unchanged(value: Any) -> Any:
    return value


def _json(text: str) -> str:
    """PostgreSQL stores no NUL in JSON."""
    return json.dumps(_without_nul(json.loads(text))) if "\\u0000" in text else text


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, list):
        return [_without_nul(each) for each in value]
    if isinstance(value, dict):
        return {_without_nul(name): _without_nul(each) for name, each in value.items()}
    return value


# How SQLite stores values that PostgreSQL has types for.
_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "boolean": bool,
    "timestamp with time zone": lambda text: f"{text}+00:00",
    "interval": lambda microseconds: timedelta(microseconds=microseconds),
    "jsonb": _json,
}
