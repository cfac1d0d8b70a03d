"""From a checked request to a row: those that wait are committed together, then answered.

One thread of the process writes, whatever the number of connections. It never answers before the
commit, and a request that it does not get to in time is told to come again.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from queue import Empty, SimpleQueue

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from agents_app.database import ENGINE
from agents_app.webhooks import Arrival, IndexedSource, Receipt, SourceIndex, deliveries
from agents_app.webhooks import sources as webhook_sources
from agents_app.webhooks.providers import RawDelivery

log = structlog.get_logger("drover.webhooks")
MOST_IN_ONE_COMMIT = 64
MOST_BYTES_IN_ONE_COMMIT = 8 * 2**20
MOST_WAITING = 5000
# GitHub gives up after 10 s: until then a database that is merely slow is waited for.
ANSWER_SECONDS = 9.0
COUNT_SECONDS = 10.0
AWAY = (OperationalError, InterfaceError)


class Unavailable(Exception):
    """It is not stored, as far as we know: the sender must keep it and come again."""


@dataclass(frozen=True, slots=True)
class PendingDelivery:
    book: SourceIndex
    source: IndexedSource
    letter: RawDelivery
    signer: str
    answer: "asyncio.Future[Receipt]"


class Intake:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock
        # By provider and reason, since this process began.
        self.refused: Counter[tuple[str, str]] = Counter()
        # What is not in the database yet, and by source.
        self._reasons: Counter[tuple[str, str]] = Counter()
        self._uncounted: Counter[int] = Counter()
        self._waiting: SimpleQueue[PendingDelivery | None] = SimpleQueue()
        self._making = threading.Lock()
        self._thread: threading.Thread | None = None

    async def store(
        self, book: SourceIndex, source: IndexedSource, letter: RawDelivery, signer: str
    ) -> Receipt:
        """Returns when it is on disk."""
        self._start()
        if self._waiting.qsize() >= MOST_WAITING:
            raise Unavailable
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Receipt] = loop.create_future()
        timer = loop.call_later(ANSWER_SECONDS, _give_up, answer)
        self._waiting.put(PendingDelivery(book, source, letter, signer, answer))
        try:
            return await answer
        finally:
            timer.cancel()

    def refuse(self, kind: str, reason: str, sources: Iterable[IndexedSource]) -> None:
        """Counted in memory, and every few seconds in the rows of those who refused it."""
        self._start()
        self.refused[kind, reason] += 1
        with self._making:
            self._reasons[kind, reason] += 1
            self._uncounted.update(source.id for source in sources)

    def stop(self) -> None:
        """What waits is stored first; the next request would start it again."""
        with self._making:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._waiting.put(None)
            thread.join()

    # --- the writing thread -----------------------------------------------------------------

    def _start(self) -> None:
        if self._thread is None:
            with self._making:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="intake", daemon=True)
                    self._thread.start()

    def _work(self) -> None:
        count_at = time.monotonic() + COUNT_SECONDS
        going_on = True
        while going_on:
            batch, going_on = self._next_batch(max(0.0, count_at - time.monotonic()))
            try:
                self._commit(batch)
                if time.monotonic() >= count_at:
                    count_at = time.monotonic() + COUNT_SECONDS
                    self._count()
            except Exception:
                # Those of this batch are told to come again when their time is over.
                log.exception("delivery.intake_failed")
        connection.close()

    def _next_batch(self, seconds: float) -> tuple[list[PendingDelivery], bool]:
        """What waits, and whether there may be more."""
        batch: list[PendingDelivery] = []
        size = 0
        with suppress(Empty):
            while len(batch) < MOST_IN_ONE_COMMIT and size < MOST_BYTES_IN_ONE_COMMIT:
                parcel = self._waiting.get(block=not batch, timeout=seconds)
                if parcel is None:
                    return batch, False
                batch.append(parcel)
                size += len(parcel.letter.body)
        return batch, True

    def _commit(self, batch: list[PendingDelivery]) -> None:
        # Whoever was told to come again is not stored behind their back.
        batch = [parcel for parcel in batch if not parcel.answer.done()]
        if not batch:
            return
        try:
            arrivals = [_arrive(parcel) for parcel in batch]
            receipts = self._store(arrivals)
        except Exception as error:
            self._failed(batch, error)
        else:
            _tell(batch, receipts)

    def _store(self, arrivals: list[Arrival]) -> list[Receipt]:
        try:
            return deliveries.store(arrivals, self.clock())
        except AWAY:
            connection.close()
            if not ENGINE.connection_can_be_lost:
                raise
            # The connection may have died of old age. If it was lost while committing, the second
            # try finds what the first one has stored.
            return deliveries.store(arrivals, self.clock())

    def _failed(self, batch: list[PendingDelivery], error: Exception) -> None:
        """A database that is away is away for all; else one of them must not hurt the others."""
        if isinstance(error, DatabaseError):
            connection.close()
        if len(batch) > 1 and not isinstance(error, AWAY):
            for parcel in batch:
                self._commit([parcel])
            return
        log.warning("delivery.not_stored", deliveries=len(batch), error=_line(error))
        _tell(batch, [None] * len(batch))

    def _count(self) -> None:
        with self._making:
            counts, self._uncounted = self._uncounted, Counter()
            reasons, self._reasons = self._reasons, Counter()
        try:
            webhook_sources.count_refused(counts, reasons, self.clock())
        except DatabaseError:
            connection.close()
            with self._making:
                self._uncounted.update(counts)
                self._reasons.update(reasons)


def _arrive(parcel: PendingDelivery) -> Arrival:
    return deliveries.arrive(parcel.book, parcel.source, parcel.letter, parcel.signer)


def _tell(batch: list[PendingDelivery], receipts: Sequence[Receipt | None]) -> None:
    """All that wait on one event loop with one call into it."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[PendingDelivery, Receipt | None]]] = {}
    for parcel, receipt in zip(batch, receipts, strict=True):
        by_loop.setdefault(parcel.answer.get_loop(), []).append((parcel, receipt))
    for loop, answers in by_loop.items():
        with suppress(RuntimeError):  # the server has stopped meanwhile
            loop.call_soon_threadsafe(_set_answers, answers)


def _set_answers(answers: list[tuple[PendingDelivery, Receipt | None]]) -> None:
    for parcel, receipt in answers:
        if parcel.answer.done():
            continue
        if receipt is None:
            parcel.answer.set_exception(Unavailable())
        else:
            parcel.answer.set_result(receipt)


def _give_up(answer: "asyncio.Future[Receipt]") -> None:
    if not answer.done():
        answer.set_exception(Unavailable())


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
