"""A request's body, counted while it comes in: not too much, not too slowly, not too many."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[..., Awaitable[None]]
MEGABYTE = 2**20


class BodyError(Exception):
    """It is not read to its end; what the sender is told, and when to try again."""

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


class Gone(Exception):
    """Whoever sent it has hung up: there is nobody to answer."""


@dataclass
class Budget:
    """What all bodies that are being read or stored may take together."""

    most_bytes: int = 128 * MEGABYTE
    taken_bytes: int = field(default=0, init=False)

    def take(self, size: int) -> None:
        if self.taken_bytes + size > self.most_bytes:
            raise TooBusy("more is coming in than can be stored; try again in a moment")
        self.taken_bytes += size

    def give_back(self, size: int) -> None:
        self.taken_bytes -= size


class Body:
    """One body on its way; whatever happens to it, `close` gives its bytes back."""

    def __init__(self, receive: Receive, limit_bytes: int, budget: Budget) -> None:
        self._receive = receive
        self._limit = limit_bytes
        self._budget = budget
        self._pieces: list[bytes] = []
        self.size = 0
        self.complete = False

    async def read(self, announced: str, seconds: float) -> bytes:
        """`announced` is what the sender says of its length, which may be anything."""
        if announced.isascii() and announced.isdigit() and int(announced[:20]) > self._limit:
            raise self._too_large()
        try:
            async with asyncio.timeout(seconds):
                while not self.complete:
                    await self._read_piece()
        except TimeoutError:
            raise TooSlow(f"the body was not there after {seconds:g} seconds") from None
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    async def _read_piece(self) -> None:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Gone
        piece: bytes = message.get("body", b"")
        if self.size + len(piece) > self._limit:
            raise self._too_large()
        self._budget.take(len(piece))
        self.size += len(piece)
        self._pieces.append(piece)
        self.complete = not message.get("more_body", False)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"the body is too large: at most {self._limit} bytes are taken here")

    def close(self) -> None:
        self._budget.give_back(self.size)
        self._pieces.clear()
        self.size = 0
