"""All open streams of this process: one look for all of them, and each gets what is its own.

Everything here happens on the event loop, but for what is done with the database.
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
from gateway_app.streams import wire
from gateway_app.streams.look import Seen, closing, look
from gateway_app.streams.notices import Wanted
from gateway_app.streams.outlet import SendBuffer

log = structlog.get_logger("drover.streams")
T = TypeVar("T")
LOOK_SECONDS, DOUBT_SECONDS, AWAY_SECONDS = 0.2, 0.02, 1.0
# After as much as is read at once: quick readers must be able to keep up with it.
MORE_SECONDS = 0.1
RIGHTS_SECONDS = 2.0
READERS = 2


class Hub:
    def __init__(self, heartbeat_seconds: float) -> None:
        self.heartbeat_seconds = heartbeat_seconds
        self.outlets: set[SendBuffer] = set()
        # Everything up to here was handed out; None: it is not known yet where the journal ends.
        self.cursor: int | None = None
        self.runs: dict[int, Progress] = {}
        self._tail: Tail | None = None
        self._waiting_for_news = 0
        self._listeners: dict[Wanted, set[SendBuffer]] = {}
        self._followed: Counter[int] = Counter()
        self._looking: asyncio.Task[None] | None = None
        self._looked = asyncio.Event()
        # One of its own, so that nobody's long history delays what happens now.
        self._looker = ThreadPoolExecutor(1, "streams-look")
        self._readers = ThreadPoolExecutor(READERS, "streams-read")

    # --- who is here, and for what ----------------------------------------------------------

    @asynccontextmanager
    async def visit(self, outlet: SendBuffer) -> AsyncIterator[None]:
        self.outlets.add(outlet)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_while_somebody_is_here())
        try:
            yield
        finally:
            self.outlets.discard(outlet)

    def streams_of(self, tenant_id: int) -> int:
        return sum(outlet.guest.tenant_id == tenant_id for outlet in self.outlets)

    @contextmanager
    def news(self) -> Iterator[None]:
        """The journal is read while this lasts for anybody."""
        self._tail = self._tail or Tail()
        self._waiting_for_news += 1
        try:
            yield
        finally:
            self._waiting_for_news -= 1
            if not self._waiting_for_news:
                self._tail = self.cursor = None

    @contextmanager
    def listener(self, wanted: Wanted, outlet: SendBuffer) -> Iterator[None]:
        """What comes after `cursor` as it is at this moment is put into the outlet."""
        outlets = self._listeners.setdefault(wanted, set())
        outlets.add(outlet)
        try:
            yield
        finally:
            outlets.discard(outlet)
            if not outlets:
                self._listeners.pop(wanted, None)

    @contextmanager
    def follower(self, run_id: int) -> Iterator[None]:
        """The run is in `runs` after the look after next at the latest."""
        self._followed[run_id] += 1
        try:
            yield
        finally:
            self._followed[run_id] -= 1
            if not self._followed[run_id]:
                del self._followed[run_id]

    # --- the look ---------------------------------------------------------------------------

    async def next_look(self) -> None:
        await self._looked.wait()

    async def read(self, question: Callable[[], T]) -> T:
        """Something that is asked for one stream alone."""
        return await self._ask(self._readers, question)

    async def _ask(self, threads: Executor, question: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads, closing, question)

    async def _look_while_somebody_is_here(self) -> None:
        loop = asyncio.get_running_loop()
        ask_at = loop.time() + RIGHTS_SECONDS
        while self.outlets:
            ask_for_rights = loop.time() >= ask_at
            if ask_for_rights:
                ask_at = loop.time() + RIGHTS_SECONDS
            await asyncio.sleep(await self._look(ask_for_rights))

    async def _look(self, ask_for_rights: bool) -> float:
        """And in how many seconds to look again."""
        tail = self._tail
        guests = frozenset(outlet.guest for outlet in self.outlets)
        question = partial(look, tail, tuple(self._followed), guests, ask_for_rights)
        try:
            seen = await self._ask(self._looker, question)
        except Exception as error:
            self._failed(error)
            return AWAY_SECONDS
        # The tail of those who left meanwhile is of no use to those who have come since.
        self._hand_out(seen, of_now=tail is self._tail)
        if len(seen.told) == MAX_TAIL_ENTRIES:
            return MORE_SECONDS
        return DOUBT_SECONDS if tail and tail.is_waiting else LOOK_SECONDS

    def _hand_out(self, seen: Seen, *, of_now: bool) -> None:
        # First: what has happened since is none of their business.
        for outlet in [each for each in self.outlets if each.guest in seen.without_rights]:
            outlet.end(wire.UNAUTHORIZED)
        self.runs = seen.runs
        if of_now and seen.cursor is not None:
            self.cursor = seen.cursor
            self._tell(seen)
        self._wake()

    def _tell(self, seen: Seen) -> None:
        for wanted, outlets in self._listeners.items() if seen.told else ():
            if data := wanted.events(seen.told):
                for outlet in outlets:
                    outlet.put(data)

    def _failed(self, error: Exception) -> None:
        """Streams stay open meanwhile: afterwards nothing is missing."""
        if isinstance(error, DatabaseError):
            log.warning("stream.database_away", error=" ".join(str(error).split())[:300])
        else:
            log.error("stream.look_failed", exc_info=error)
        self._wake()

    def _wake(self) -> None:
        self._looked.set()
        self._looked = asyncio.Event()
