"""The book of senders and listeners as it was a moment ago, read beside the event loop."""

import asyncio
import time

import structlog
from django.db import DatabaseError, connection

from agents_app.webhooks import SourceIndex, read_source_index
from gateway_app.webhooks.intake import Unavailable

log = structlog.get_logger("drover.webhooks")
FRESH_SECONDS = 1.0
# While it is read again the old one serves; older than this it may be wrong in any way.
USABLE_SECONDS = 3.0
READ_SECONDS = 5.0


class SourceCache:
    def __init__(self) -> None:
        self._book: SourceIndex | None = None
        self._read_at = 0.0
        self._reading: asyncio.Task[None] | None = None

    async def current(self) -> SourceIndex:
        if self._book is not None and self._age < FRESH_SECONDS:
            return self._book
        reading = self._read_again()
        if self._book is None or self._age >= USABLE_SECONDS:
            # Shielded: others wait for the same reading.
            await asyncio.wait([reading], timeout=READ_SECONDS)
        if self._book is None or self._age >= USABLE_SECONDS:
            raise Unavailable
        return self._book

    @property
    def _age(self) -> float:
        return time.monotonic() - self._read_at

    def _read_again(self) -> "asyncio.Task[None]":
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        return self._reading

    async def _read(self) -> None:
        began_at = time.monotonic()
        try:
            self._book = await asyncio.to_thread(_read_and_close)
            self._read_at = began_at
        except DatabaseError as error:
            log.warning("webhook.book_unreadable", error=" ".join(str(error).split())[:300])


def _read_and_close() -> SourceIndex:
    try:
        return read_source_index()
    finally:
        # This thread may never be here again, and a pool wants its connections back.
        connection.close()
