"""Reads the body of a request, with limits on its size, its time and the memory of all bodies."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from starlette.requests import ClientDisconnect
from starlette.types import Receive

MEGABYTE = 2**20
# The first bytes of each body have a limit of their own: while large bodies use up the other limit,
# small bodies are still accepted, also from the same client.
SMALL_BYTES = 128 * 1024
# An unfinished body must grow by so many bytes in so many seconds: 4 kB a second.
PROGRESS_BYTES, PROGRESS_SECONDS = 20_000, 5.0


class BodyError(Exception):
    """The body is not read to its end; the attributes are those of the response."""

    status = 400
    code = "bad_body"
    retry_after_seconds = 0


class TooLarge(BodyError):
    status = 413
    code = "too_large"


class TooSlow(BodyError):
    status = 408
    code = "too_slow"


class TooBusy(BodyError):
    status = 503
    code = "busy"
    retry_after_seconds = 5


@dataclass
class _Pool:
    """Bytes for all clients, of which a client may use as much as it leaves free for others.

    The first client gets a half, the next one a quarter, and no number of clients gets all."""

    max_bytes: int
    used_bytes: int = 0
    by_client: Counter[str] = field(default_factory=Counter)

    def take(self, client: str, size: int) -> None:
        own, free = self.by_client[client], self.max_bytes - self.used_bytes
        if own + size > free - size:
            whose = "from your address" if own else "at once"
            raise TooBusy(f"too many unfinished request bodies {whose}: try again in a moment")
        self.used_bytes += size
        self.by_client[client] += size

    def give_back(self, client: str, size: int) -> None:
        self.used_bytes -= size
        self.by_client[client] -= size
        if not self.by_client[client]:
            del self.by_client[client]


class BodyBudget:
    """The memory that all bodies together may use while they are read or stored.

    The first SMALL_BYTES of each body are taken from `small_bytes`, the rest from `large_bytes`."""

    def __init__(self, large_bytes: int, small_bytes: int) -> None:
        self._large, self._small = _Pool(large_bytes), _Pool(small_bytes)

    @property
    def used_bytes(self) -> int:
        return self._large.used_bytes + self._small.used_bytes

    def take(self, client: str, before: int, after: int) -> None:
        """Takes the bytes by which a body grows; raises TooBusy and takes nothing if it cannot."""
        small = min(after, SMALL_BYTES) - min(before, SMALL_BYTES)
        large = after - before - small
        if small:
            self._small.take(client, small)
        if large:
            try:
                self._large.take(client, large)
            except TooBusy:
                self._small.give_back(client, small)
                raise

    def give_back(self, client: str, size: int) -> None:
        """Returns all bytes of a body of this size."""
        if size:
            self._small.give_back(client, min(size, SMALL_BYTES))
        if size > SMALL_BYTES:
            self._large.give_back(client, size - SMALL_BYTES)


class Body:
    """The body of one request; `close` returns its bytes to the budget, however reading ended.

    Reads the messages itself: with Starlette's Request a webhook took 81 microseconds before it
    is stored, without it 60.
    """

    def __init__(
        self, receive: Receive, limit_bytes: int, budget: BodyBudget, client: str = ""
    ) -> None:
        self._receive = receive
        self._limit = limit_bytes
        self._budget = budget
        self._client = client
        self._pieces: list[bytes] = []
        self.size = 0

    async def read(self, announced_length: str, seconds: float) -> bytes:
        """Raises BodyError, or ClientDisconnect if the connection ends before the body does.

        `announced_length` is the Content-Length header, which may contain any text."""
        digits = announced_length if announced_length.isascii() else ""
        if digits.isdigit() and int(digits[:20]) > self._limit:
            raise self._too_large()
        loop = asyncio.get_running_loop()
        deadline, progress = loop.time() + seconds, 0
        try:
            async with asyncio.timeout(min(seconds, PROGRESS_SECONDS)) as timer:
                while await self._read_piece():
                    if self.size - progress >= PROGRESS_BYTES:
                        progress = self.size
                        timer.reschedule(min(deadline, loop.time() + PROGRESS_SECONDS))
        except TimeoutError:
            raise self._too_slow(seconds) from None
        content = b"".join(self._pieces)
        self._pieces.clear()
        return content

    async def _read_piece(self) -> bool:
        """Whether the body has more pieces."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        piece: bytes = message.get("body", b"")
        if self.size + len(piece) > self._limit:
            raise self._too_large()
        self._budget.take(self._client, self.size, self.size + len(piece))
        self.size += len(piece)
        self._pieces.append(piece)
        return bool(message.get("more_body", False))

    def _too_large(self) -> TooLarge:
        return TooLarge(f"the body is too large: at most {self._limit} bytes are accepted here")

    def _too_slow(self, seconds: float) -> TooSlow:
        rate = int(PROGRESS_BYTES / PROGRESS_SECONDS)
        return TooSlow(
            f"the body is sent too slowly: send at least {rate} bytes per second, and all of it "
            f"in {seconds:g} seconds"
        )

    def close(self) -> None:
        self._budget.give_back(self._client, self.size)
        self._pieces.clear()
        self.size = 0
