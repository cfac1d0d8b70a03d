"""500 open streams while signed webhooks come in: how late an entry is heard, and what it costs.

The peer of the deliveries is Drover itself a moment before, without any stream.
"""

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import psycopg

from tests.benchmarks.bed import DATABASES, Bed, Numbers, inside, medians, percentile
from tests.benchmarks.deliveries import COMMAND, CONNECTIONS, load
from tests.benchmarks.table import Row
from tests.faults.hooks import SECRET
from tests.parts.stack_part import PrivateStack

STREAMS, APART_SECONDS, FIRST_SECONDS = 500, 0.25, 1.0
LATE_MS = 1000.0
_ENTRY = (
    "INSERT INTO drover_run_event (tenant_id, name, at, detail) "
    "VALUES (?, 'run.succeeded', ?, '') RETURNING id"
)


def measure(bed: Bed) -> list[Row]:
    subjects = {on: lambda on=on: _measured(bed, on) for on in DATABASES}  # type: ignore[misc]
    found = medians(bed.rounds, subjects)
    return [row for on in DATABASES for row in _rows(on, found[on])]


def _rows(on: str, found: Numbers) -> list[Row]:
    late = [
        Row(
            what=f"heard by each of {STREAMS} streams after the commit: {name}",
            on=on,
            drover=found[name],
            unit="ms",
            at_most=LATE_MS,
        )
        for name in ("p50", "p99", "max")
    ]
    rate = Row(
        what=f"signed deliveries at {CONNECTIONS} connections meanwhile (peer: without streams)",
        on=on,
        drover=found["with"],
        peer=found["without"],
        unit="/s",
        at_least_of_peer=0.7,
    )
    return [*late, rate]


def _measured(bed: Bed, on: str) -> Numbers:
    with bed.drover(on, HOOK_SECRET=SECRET, DROVER_API_RATE="100000") as stack:
        inside(stack, "hooks:write", command=COMMAND, scale=4)
        guest = inside(stack, "streams:let_in")
        stack.start("gateway")
        without = load(stack, "without")
        with _listeners(stack.conf.port, guest["token"]) as heard, ThreadPoolExecutor(1) as pool:
            loading = pool.submit(load, stack, "with")
            told = _tell(stack, guest["tenant_id"], loading.done)
            loaded = loading.result()
            time.sleep(LATE_MS / 1000)
        late = [(at - told[number]) * 1000 for number, at in heard]
        assert len(late) == len(told) * STREAMS, "some of them have missed something"
    return {
        "without": without["per_second"],
        "with": loaded["per_second"],
        "p50": percentile(late, 50),
        "p99": percentile(late, 99),
        "max": max(late),
    }


def _tell(stack: PrivateStack, tenant_id: int, over: Callable[[], bool]) -> dict[int, float]:
    """The commit time of each entry."""
    told = {}
    time.sleep(FIRST_SECONDS)
    with _writer(stack) as tell:
        while not over():
            number, at = tell(tenant_id)
            told[number] = at
            time.sleep(APART_SECONDS)
    return told


@contextlib.contextmanager
def _writer(stack: PrivateStack) -> Iterator[Callable[[int], tuple[int, float]]]:
    """Time counts from the commit, so that waiting for SQLite's lock is not measured."""
    on_sqlite = stack.database_url.startswith("sqlite")
    connection: Any = (
        sqlite3.connect(stack.database_url.removeprefix("sqlite://"), timeout=60)
        if on_sqlite
        else psycopg.connect(stack.database_url)
    )

    def tell(tenant_id: int) -> tuple[int, float]:
        now: Any = datetime.now(UTC)
        sql = _ENTRY if on_sqlite else _ENTRY.replace("?", "%s")
        values = (tenant_id, now.isoformat(" ")[:-6] if on_sqlite else now)
        (number,) = connection.execute(sql, values).fetchone()
        committed_at = time.time()
        connection.commit()
        return number, committed_at

    with contextlib.closing(connection):
        yield tell


# --- subscribers ----------------------------------------------------------------------------


@contextlib.contextmanager
def _listeners(port: int, token: str) -> Iterator[list[tuple[int, float]]]:
    """All are open; what each hears, and when, is in the list when it is left."""
    heard: list[tuple[int, float]] = []
    ready, stop = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_listen(port, token, heard, ready, stop)))
    thread.start()
    assert ready.wait(60), "the streams do not open"
    try:
        yield heard
    finally:
        stop.set()
        thread.join()


async def _listen(
    port: int,
    token: str,
    heard: list[tuple[int, float]],
    ready: threading.Event,
    stop: threading.Event,
) -> None:
    request = (
        "GET /v1/notifications/stream?kinds=run.completed HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {token}\r\n\r\n"
    )
    readers = []
    for _ in range(STREAMS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request.encode())
        await reader.readuntil(b"event: open")
        readers.append(asyncio.create_task(_hear(reader, writer, heard)))
    ready.set()
    while not stop.is_set():
        await asyncio.sleep(0.1)
    for reader_task in readers:
        reader_task.cancel()


async def _hear(
    reader: asyncio.StreamReader, _writer: asyncio.StreamWriter, heard: list[tuple[int, float]]
) -> None:
    named = False
    while line := await reader.readline():
        named = named or line.startswith(b"event: notification")
        if named and line.startswith(b"id: "):
            heard.append((int(line[4:]), time.time()))
            named = False
