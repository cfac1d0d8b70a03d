"""Caches the source index for about a second; it is read on a thread, not on the event loop."""

import asyncio
import time

import structlog
from django.db import DatabaseError, connection

from agents_app.webhooks import SourceIndex, read_source_index
from gateway_app.webhooks.intake import Unavailable

log = structlog.get_logger("drover.webhooks")
FRESH_SECONDS = 1.0
# An index of this age is still used while the next one is read; an older one never.
USABLE_SECONDS = 3.0
READ_SECONDS = 5.0


class SourceCache:
    """Used on one event loop; several requests wait for the same read."""

    def __init__(self) -> None:
        self._index: SourceIndex | None = None
        self._read_at = 0.0
        self._reading: asyncio.Task[None] | None = None

    async def current(self) -> SourceIndex:
        """Raises Unavailable if there is no usable index and none can be read in time."""
        if self._index is not None and self._age < FRESH_SECONDS:
            return self._index
        reading = self._read_again()
        if self._index is None or self._age >= USABLE_SECONDS:
            # Not cancelled with this request: other requests wait for the same read.
            await asyncio.wait([reading], timeout=READ_SECONDS)
        if self._index is None or self._age >= USABLE_SECONDS:
            raise Unavailable
        return self._index

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
            self._index = await asyncio.to_thread(_read_and_close)
            self._read_at = began_at
        except DatabaseError as error:
            log.warning("webhook.index_unreadable", error=" ".join(str(error).split())[:300])


def _read_and_close() -> SourceIndex:
    try:
        return read_source_index()
    finally:
        # The next read may run on another thread, and the pool needs the connection back.
        connection.close()
