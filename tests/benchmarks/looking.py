"""Observes the database and the processes of a running stack from outside."""

import contextlib
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import psutil
import psycopg

from tests.parts.stack_part import PrivateStack

GIVE_UP_SECONDS = 60.0


def seconds_of(moment: Any) -> float:
    """A time column as seconds; SQLite stores it as text in UTC."""
    if isinstance(moment, str):
        return datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()
    assert isinstance(moment, datetime)
    return moment.timestamp()


@contextlib.contextmanager
def reader(stack: PrivateStack) -> Iterator[Callable[[str], Any]]:
    """A function from SQL to one value, on a connection that stays open."""
    with contextlib.closing(_connect(stack.database_url)) as connection:
        yield lambda sql: connection.execute(sql).fetchone()[0]


def _connect(url: str) -> Any:
    if url.startswith("sqlite"):
        return sqlite3.connect(url.removeprefix("sqlite://"), timeout=20, isolation_level=None)
    return psycopg.connect(url, autocommit=True)


def time_reached(count: Callable[[], int], wanted: int, every_seconds: float) -> float:
    """When the count was first reached, at most one poll late; infinite if never."""
    give_up_at = time.monotonic() + GIVE_UP_SECONDS
    while time.monotonic() < give_up_at:
        seen = count()
        if seen >= wanted:
            return time.time()
        time.sleep(every_seconds)
    return math.inf


def cpu_seconds(processes: Iterable[psutil.Process]) -> float:
    """CPU seconds of the processes and of their reaped children."""
    spent = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            spent += times.user + times.system + times.children_user + times.children_system
    return spent


def tree(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def worker_process(guard_pid: int) -> psutil.Process:
    """A worker is the child of its guard."""
    return psutil.Process(guard_pid).children()[0]
