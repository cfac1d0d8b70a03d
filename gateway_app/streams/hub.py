"""All open streams of a process: one poll of the database serves them all.

Everything here runs on the event loop, except reads of the database.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TypeVar

import structlog
from django.db import DatabaseError

from agents_app.events import MAX_TAIL_ENTRIES, Tail
from agents_app.output import Progress
from gateway_app.streams.journal_filter import JournalFilter
from gateway_app.streams.poll import PollResult, poll, read_and_release
from gateway_app.streams.send_buffer import SendBuffer

log = structlog.get_logger("drover.streams")
T = TypeVar("T")
POLL_SECONDS = 0.2
# While an entry with a lower id may still be committed.
WAITING_POLL_SECONDS = 0.02
# While the database cannot be reached.
FAILED_POLL_SECONDS = 1.0
# After a full batch of entries: clients that read fast must be able to keep up.
BATCH_SECONDS = 0.1
RIGHTS_SECONDS = 2.0
READ_THREADS = 2


class Hub:
    def __init__(self, heartbeat_seconds: float) -> None:
        self.heartbeat_seconds = heartbeat_seconds
        self.buffers: set[SendBuffer] = set()
        # The last journal entry that was distributed; None: the end of the journal is not known.
        self.cursor: int | None = None
        self.runs: dict[int, Progress] = {}
        self._tail: Tail | None = None
        self._journal_readers = 0
        self._subscriptions: dict[JournalFilter, set[SendBuffer]] = {}
        self._followed: Counter[int] = Counter()
        self._polling: asyncio.Task[None] | None = None
        self._polled = asyncio.Event()
        # A thread of its own, so that a long history of one stream delays no poll.
        self._poll_thread = ThreadPoolExecutor(1, "streams-poll")
        self._read_threads = ThreadPoolExecutor(READ_THREADS, "streams-read")

    # --- open streams -----------------------------------------------------------------------

    @asynccontextmanager
    async def open(self, buffer: SendBuffer) -> AsyncIterator[None]:
        """Registers a stream; the hub polls while at least one stream is registered."""
        self.buffers.add(buffer)
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll_while_open())
        try:
            yield
        finally:
            self.buffers.discard(buffer)

    def count_streams(self, tenant_id: int) -> int:
        return sum(buffer.subscriber.tenant_id == tenant_id for buffer in self.buffers)

    @contextmanager
    def reading_journal(self) -> Iterator[None]:
        """Polls read the journal while at least one stream is in this context."""
        self._tail = self._tail or Tail()
        self._journal_readers += 1
        try:
            yield
        finally:
            self._journal_readers -= 1
            if not self._journal_readers:
                self._tail = self.cursor = None

    @contextmanager
    def subscribed(self, wanted: JournalFilter, buffer: SendBuffer) -> Iterator[None]:
        """Puts the entries after `cursor`, as it is now, into the buffer."""
        buffers = self._subscriptions.setdefault(wanted, set())
        buffers.add(buffer)
        try:
            yield
        finally:
            buffers.discard(buffer)
            if not buffers:
                self._subscriptions.pop(wanted, None)

    @contextmanager
    def following(self, run_id: int) -> Iterator[None]:
        """The run is in `runs` after two polls at the latest."""
        self._followed[run_id] += 1
        try:
            yield
        finally:
            self._followed[run_id] -= 1
            if not self._followed[run_id]:
                del self._followed[run_id]

    # --- polls ------------------------------------------------------------------------------

    async def next_poll(self) -> None:
        await self._polled.wait()

    async def read(self, query: Callable[[], T]) -> T:
        """Runs a query of a single stream on a thread."""
        return await self._run(self._read_threads, query)

    async def _run(self, threads: Executor, query: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads, read_and_release, query)

    async def _poll_while_open(self) -> None:
        loop = asyncio.get_running_loop()
        check_at = loop.time() + RIGHTS_SECONDS
        while self.buffers:
            check_rights = loop.time() >= check_at
            if check_rights:
                check_at = loop.time() + RIGHTS_SECONDS
            await asyncio.sleep(await self._poll(check_rights))

    async def _poll(self, check_rights: bool) -> float:
        """Returns the seconds until the next poll."""
        tail = self._tail
        subscribers = frozenset(buffer.subscriber for buffer in self.buffers)
        runs = tuple(self._followed)
        try:
            result = await self._run(
                self._poll_thread,
                partial(poll, tail, runs, subscribers, check_rights=check_rights),
            )
        except Exception as error:
            self._log_failure(error)
            return FAILED_POLL_SECONDS
        # Entries of a tail that was closed during the poll are not for the streams opened since.
        self._distribute(result, is_current=tail is self._tail)
        if len(result.entries) == MAX_TAIL_ENTRIES:
            return BATCH_SECONDS
        return WAITING_POLL_SECONDS if tail and tail.is_waiting else POLL_SECONDS

    def _distribute(self, result: PollResult, *, is_current: bool) -> None:
        # First: a subscriber without rights must not get the entries of this poll.
        for buffer in self.buffers:
            if event := result.without_rights.get(buffer.subscriber):
                buffer.close(event)
        self.runs = result.runs
        if is_current and result.cursor is not None:
            self.cursor = result.cursor
            self._put_entries(result)
        self._end_poll()

    def _put_entries(self, result: PollResult) -> None:
        for wanted, buffers in self._subscriptions.items() if result.entries else ():
            if data := wanted.events(result.entries):
                for buffer in buffers:
                    buffer.put(data)

    def _log_failure(self, error: Exception) -> None:
        """Streams stay open; the next poll that succeeds reads everything since the last one."""
        if isinstance(error, DatabaseError):
            log.warning("stream.database_away", error=" ".join(str(error).split())[:300])
        else:
            log.error("stream.look_failed", exc_info=error)
        self._end_poll()

    def _end_poll(self) -> None:
        self._polled.set()
        self._polled = asyncio.Event()
