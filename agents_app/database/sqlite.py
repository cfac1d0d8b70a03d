"""The engine for SQLite: one writer at a time, times stored as texts in UTC."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.db import connections

from agents_app.database.engine import Columns, ColumnTypes, Engine, Row, Statement

# SQLite's limit of 32,766 parameters allows more; longer statements are not quicker.
ROWS_IN_ONE_STATEMENT = 500
# Other writers wait for a step: 2,000 pages are 8 MB.
PAGES_IN_ONE_STEP = 2000
# A time read with this suffix needs nothing but `fromisoformat`.
_UTC_SUFFIX = " || '+00:00'"


class SqliteEngine(Engine):
    """Transactions begin with BEGIN IMMEDIATE, so the writing one holds the only lock there is."""

    name = "sqlite"
    groups_commits = True
    ids_appear_in_order = True
    writes_several_tables_at_once = False
    connection_can_be_lost = False

    def release_connection(self) -> None:
        """Keep it: opening the file again costs more than most statements, and there is no pool."""

    # --- statements -------------------------------------------------------------------------

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> Any:
        database = self.connection()
        with database.wrap_database_errors:
            return database.connection.execute(_with_question_marks(sql), values)

    def fetch_all(self, sql: str, values: Sequence[Any]) -> list[Row]:
        found: list[Row] = self.execute(sql, values).fetchall()
        return found

    def fetch_each(self, statements: Iterable[Statement]) -> list[list[Row]]:
        return [self.fetch_all(sql, values) for sql, values in statements]

    def with_rows(self, sql: str, types: ColumnTypes, columns: Columns) -> list[Statement]:
        stored = [self._stored(types[name], column) for name, column in columns.items()]
        rows = list(zip(*stored, strict=True))
        parts = (
            rows[start : start + ROWS_IN_ONE_STATEMENT]
            for start in range(0, len(rows), ROWS_IN_ONE_STATEMENT)
        )
        mark = f"({', '.join(['%s'] * len(columns))})"
        names = ", ".join(columns)
        return [
            (
                f"WITH v ({names}) AS (VALUES {', '.join([mark] * len(part))}) {sql}",
                [value for row in part for value in row],
            )
            for part in parts
        ]

    def _stored(self, kind: str, column: Sequence[Any]) -> Sequence[Any]:
        """Each different time is converted once: in a column most of them are equal."""
        if kind != "timestamptz":
            return column
        texts = {at: at and self.to_database_time(at) for at in set(column)}
        return [texts[at] for at in column]

    # --- times ------------------------------------------------------------------------------

    def to_database_time(self, moment: datetime) -> str:
        # As Django writes it: in UTC without an offset.
        return moment.astimezone(UTC).isoformat(" ")[:-6]

    def select_columns(self, names: Sequence[str]) -> list[str]:
        """As texts: the driver's own conversion of times takes ten times as long."""
        return [
            f"{name}{_UTC_SUFFIX}" if name.endswith(("_at", "_until")) else name for name in names
        ]

    def from_database_times(self, column: Sequence[Any]) -> Sequence[Any]:
        read = {text: text and datetime.fromisoformat(text) for text in set(column)}
        return [read[text] for text in column]

    def seconds_between(self, earlier: str, later: str) -> str:
        return f"((julianday({later}) - julianday({earlier})) * 86400.0)"

    def time_bucket(self, moment: str) -> str:
        return f"CAST((julianday({moment}) - 2440587.5) * 86400.0 / %s AS INTEGER)"

    def greatest(self, *expressions: str) -> str:
        return f"max({', '.join(expressions)})"

    def clock_difference(self, now: datetime) -> timedelta:
        """None: the database has no other clock than this host's."""
        return timedelta(0)

    def file(self) -> Path | None:
        return Path(str(connections[self.alias].settings_dict["NAME"]))

    def return_free_space(self, *, rewrite: bool = False) -> int:
        """In steps after the file was rewritten once: only then it has the map that steps need."""
        before = self._pages()
        if rewrite:
            self.execute("PRAGMA auto_vacuum = INCREMENTAL", [])
            self.execute("VACUUM", [])
        else:
            # `execute` of the driver would free one page only. Without the map nothing happens.
            step = f"PRAGMA incremental_vacuum({PAGES_IN_ONE_STEP})"
            database = self.connection()
            with database.wrap_database_errors:
                database.connection.executescript(step)
        (page_size,) = self.execute("PRAGMA page_size", []).fetchone()
        return max(0, before - self._pages()) * int(page_size)

    def _pages(self) -> int:
        (count,) = self.execute("PRAGMA page_count", []).fetchone()
        return int(count)

    def accepts_wrong_password(self) -> bool:
        """False: there is no server; the mode of the file says who may read it."""
        return False

    # --- locks: the writing transaction excludes every other one ------------------------------

    def row_lock(self, table: str = "") -> str:
        return ""

    def row_lock_skipping_locked(self, table: str) -> str:
        return ""

    def lock_row(self, table: str, key: int) -> None:
        pass

    def lock_number(self, kind: int, number: int) -> None:
        pass

    # --- order of commits -------------------------------------------------------------------

    def writing_transactions(self, table: str) -> frozenset[str]:
        return frozenset()

    def newest_settled_id(self, table: str, after: int, now: datetime) -> int:
        row = self.execute(f"SELECT max(id) FROM {table} WHERE id > %s", [after]).fetchone()  # noqa: S608
        return int(row[0] or after)


@lru_cache(maxsize=512)
def _with_question_marks(sql: str) -> str:
    return sql.replace("%s", "?")
