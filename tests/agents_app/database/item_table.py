"""A table `item` on either engine: rows, other connections and waiting for locks."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, TypeVar

from django.db import OperationalError, connections, transaction

from agents_app.database.engine import Engine

T = TypeVar("T")
NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
TYPES = {"id": "bigint", "at": "timestamptz", "name": "text", "size": "bigint", "data": "bytea"}
CREATE = {
    "sqlite": "CREATE TABLE item (id integer PRIMARY KEY AUTOINCREMENT, at datetime, "
    "name text UNIQUE, size bigint, data blob)",
    "postgresql": "CREATE TABLE item (id bigserial PRIMARY KEY, at timestamptz, "
    "name text UNIQUE, size bigint, data bytea)",
}
INSERT = """
INSERT INTO item (id, at, name, size, data) SELECT v.id, v.at, v.name, v.size, v.data FROM v
WHERE true ON CONFLICT DO NOTHING RETURNING id"""


def columns(*rows: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(TYPES, zip(*rows, strict=True), strict=True))


def stored(engine: Engine) -> list[tuple[Any, ...]]:
    rows = engine.fetch_all("SELECT id, at, name, size, data FROM item ORDER BY id", [])
    return [(key, at and engine.from_database_time(at), *rest) for key, at, *rest in rows]


def insert(engine: Engine, name: str, at: datetime = NOON) -> int:
    sql = "INSERT INTO item (at, name, size) VALUES (%s, %s, 0) RETURNING id"
    (key,) = engine.execute(sql, [engine.to_database_time(at), name]).fetchone()
    return int(key)


def names(engine: Engine) -> list[str]:
    return [name for (name,) in engine.execute("SELECT name FROM item ORDER BY id", [])]


class Elsewhere:
    """Another thread with a connection of its own."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._thread = ThreadPoolExecutor(1)

    def start(self, work: Callable[[], T]) -> "Future[T]":
        return self._thread.submit(work)

    def do(self, work: Callable[[], T]) -> T:
        return self.start(work).result(timeout=10)

    def begin(self, work: Callable[[], T]) -> T:
        """Do the work in a transaction that stays open until `end`."""

        def opened() -> T:
            self._atomic = transaction.atomic(using=self.engine.alias)
            self._atomic.__enter__()
            return work()

        return self.do(opened)

    def end(self) -> None:
        self.do(lambda: self._atomic.__exit__(None, None, None))

    def close(self) -> None:
        self.do(lambda: connections[self.engine.alias].close())
        self._thread.shutdown()


def give_up_at_once(engine: Engine) -> None:
    """A statement of this thread that waits for a lock fails soon."""
    limit = {"sqlite": "PRAGMA busy_timeout = 200", "postgresql": "SET lock_timeout = 200"}
    engine.execute(limit[engine.name], [])


def blocked(engine: Engine, work: Callable[[], Any]) -> bool:
    """Whether the work has to wait for another transaction."""
    try:
        with transaction.atomic(using=engine.alias):
            work()
    except OperationalError:
        return True
    return False
