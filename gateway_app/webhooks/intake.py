"""Stores accepted deliveries: all deliveries that wait at the same time are stored in one commit.

One thread of the process stores them, for any number of connections. The response is sent after the
commit; if a delivery is not stored in time, the sender gets an error and repeats it.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.db import DatabaseError, connection

from agents_app.database import (
    UNAVAILABLE,
    GroupCommit,
    Outcome,
    repeat_after_lost_connection,
)
from agents_app.webhooks import (
    IndexedSource,
    Receipt,
    RefusedRequest,
    SourceIndex,
    deliveries,
)
from agents_app.webhooks import sources as webhook_sources
from agents_app.webhooks.providers import PROVIDERS, TRIAL_PROVIDERS, RawDelivery
from gateway_app.asgi import MEGABYTE

log = structlog.get_logger("drover.webhooks")
MAX_BYTES_IN_ONE_COMMIT = 8 * MEGABYTE
MAX_WAITING = 5000
# Below the 10 s after which GitHub gives up, to wait for a slow database as long as possible.
ANSWER_SECONDS = 9.0
COUNT_SECONDS = 10.0
# Of one source and of all sources, between two writes.
MOST_TRACES_OF_SOURCE, MOST_TRACES = 20, 100


class Unavailable(Exception):
    """The delivery may not be stored: the sender must repeat it."""


@dataclass(frozen=True, slots=True)
class PendingDelivery:
    index: SourceIndex
    source: IndexedSource
    raw: RawDelivery
    signer: str
    answer: "asyncio.Future[Receipt]"


class Intake:
    """Stores accepted deliveries and counts refused ones."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock
        # By provider and reason, since the process started.
        self.refused: Counter[tuple[str, str]] = Counter()
        # Refusals that are not in the database yet, by reason and by source.
        self._reasons: Counter[tuple[str, str]] = Counter()
        self._uncounted: Counter[int] = Counter()
        self._traces: dict[tuple[int, str, str], RefusedRequest] = {}
        self._counting = threading.Lock()
        self._timer: threading.Timer | None = None
        self._commits: GroupCommit[PendingDelivery, Receipt | None] = GroupCommit(
            "intake",
            self._commit,
            _answer,
            # The database is unavailable for all deliveries of the batch alike.
            batch_errors=UNAVAILABLE,
            size_of=lambda pending: len(pending.raw.body),
            max_size=MAX_BYTES_IN_ONE_COMMIT,
        )

    def stop(self) -> None:
        """Stores the waiting deliveries and ends the threads; a new request starts them again."""
        with self._counting:
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            timer.join()
        self._commits.stop()

    # --- accepted deliveries ----------------------------------------------------------------

    async def store(
        self, index: SourceIndex, source: IndexedSource, raw: RawDelivery, signer: str
    ) -> Receipt:
        """Returns when the delivery is on disk."""
        if self._commits.waiting >= MAX_WAITING:
            raise Unavailable
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Receipt] = loop.create_future()
        timer = loop.call_later(ANSWER_SECONDS, _give_up, answer)
        self._commits.put(PendingDelivery(index, source, raw, signer, answer))
        try:
            return await answer
        finally:
            timer.cancel()

    def _commit(self, batch: list[PendingDelivery]) -> list[Receipt | None]:
        """Stores the deliveries of a batch; runs on the thread of the group commit."""
        # A delivery that was answered with an error must not be stored: its sender repeats it.
        wanted = [each for each in batch if not each.answer.done()]
        if not wanted:
            return [None] * len(batch)
        accepted = [
            deliveries.match_delivery(each.index, each.source, each.raw, each.signer)
            for each in wanted
        ]
        # A second execution finds the deliveries that the first one has stored.
        receipts = repeat_after_lost_connection(lambda: deliveries.store(accepted, self.clock()))
        stored = {id(each): receipt for each, receipt in zip(wanted, receipts, strict=True)}
        return [stored.get(id(each)) for each in batch]

    # --- refused deliveries -----------------------------------------------------------------

    def refuse(self, kind: str, requests: Sequence[RefusedRequest], reason: str) -> None:
        """Counts a refusal in memory, and after COUNT_SECONDS in the database.

        `requests` has one for each source of the address."""
        # The address may name any provider, and the totals have a row for each.
        why = (kind if kind in PROVIDERS or kind in TRIAL_PROVIDERS else "unknown", reason)
        self.refused[why] += 1
        with self._counting:
            self._reasons[why] += 1
            for request in requests:
                self._uncounted[request.source.id] += 1
                self._keep_trace(request)
            if self._timer is None:
                self._start_timer()

    def _keep_trace(self, request: RefusedRequest) -> None:
        """Keeps the first of equal requests; beyond the limits requests are only counted."""
        if request.key in self._traces:
            self._traces[request.key].count += 1
            return
        of_source = sum(source_id == request.source.id for source_id, *_ in self._traces)
        if of_source < MOST_TRACES_OF_SOURCE and len(self._traces) < MOST_TRACES:
            self._traces[request.key] = request

    def _start_timer(self) -> None:
        self._timer = threading.Timer(COUNT_SECONDS, self._count_on_timer)
        self._timer.daemon = True
        self._timer.start()

    def _count_on_timer(self) -> None:
        with self._counting:
            self._timer = None
        try:
            self._count()
        except Exception:
            log.exception("delivery.intake_failed")
        finally:
            connection.close()

    def _count(self) -> None:
        """Adds the refusals to the database; while it is unavailable, the timer tries again."""
        with self._counting:
            counts, self._uncounted = self._uncounted, Counter()
            reasons, self._reasons = self._reasons, Counter()
            traces, self._traces = self._traces, {}
        try:
            webhook_sources.record_refused(counts, reasons, traces.values(), self.clock())
        except UNAVAILABLE:
            connection.close()
            with self._counting:
                self._uncounted.update(counts)
                self._reasons.update(reasons)
                # Requests since then are counted already, and lose only their own row.
                self._traces |= traces
                if self._timer is None:
                    self._start_timer()
        except DatabaseError as error:
            # The next attempt would meet the same error, and keep out all later refusals.
            log.exception("delivery.traces_dropped", requests=len(traces), error=_line(error))
            webhook_sources.record_refused(counts, reasons, (), self.clock())


# --- answers --------------------------------------------------------------------------------


def _answer(batch: list[PendingDelivery], outcomes: Sequence[Outcome]) -> None:
    """Answers the requests, with one call into each event loop."""
    errors = [error for _, error in outcomes if error is not None]
    if errors:
        log.warning("delivery.not_stored", deliveries=len(errors), error=_line(errors[0]))
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[PendingDelivery, Receipt | None]]] = {}
    for pending, (receipt, _) in zip(batch, outcomes, strict=True):
        by_loop.setdefault(pending.answer.get_loop(), []).append((pending, receipt))
    for loop, answers in by_loop.items():
        with suppress(RuntimeError):  # the event loop has been closed
            loop.call_soon_threadsafe(_set_answers, answers)


def _set_answers(answers: list[tuple[PendingDelivery, Receipt | None]]) -> None:
    for pending, receipt in answers:
        if pending.answer.done():
            continue
        if receipt is None:
            pending.answer.set_exception(Unavailable())
        else:
            pending.answer.set_result(receipt)


def _give_up(answer: "asyncio.Future[Receipt]") -> None:
    if not answer.done():
        answer.set_exception(Unavailable())


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
