"""What one client has yet to be sent, within bounds; used on the event loop alone."""

import asyncio

from gateway_app.streams import wire
from gateway_app.streams.ticket import Subscriber

MOST_WAITING_BYTES = 1024 * 1024


class SendBuffer:
    def __init__(self, guest: Subscriber, most_waiting_bytes: int = MOST_WAITING_BYTES) -> None:
        self.guest = guest
        self.over = False
        self.last_words = b""
        self._most = most_waiting_bytes
        self._waiting: list[bytes] = []
        self._size = 0
        self._woken = asyncio.Event()
        self._taken_at = asyncio.get_running_loop().time()

    def put(self, data: bytes) -> None:
        """Whoever leaves too much lying about is told so and has to come back."""
        if self.over:
            return
        self._size += len(data)
        if self._size > self._most:
            self.end(wire.SLOW)
            return
        self._waiting.append(data)
        self._woken.set()

    def end(self, last_words: bytes = b"") -> None:
        """What waits is dropped: the client comes back to where it has read, if it may."""
        if not self.over:
            self.over, self.last_words = True, last_words
            self._waiting.clear()
            self._woken.set()

    async def take(self) -> bytes:
        """All that waits; nothing when it is over."""
        await self._woken.wait()
        self._woken.clear()
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._size = 0
        self._taken_at = asyncio.get_running_loop().time()
        return data

    def fill_silence(self, seconds: float) -> None:
        """From now on, until it is over. One timer a stream: one for every event costs more."""
        loop = asyncio.get_running_loop()
        left = self._taken_at + seconds - loop.time()
        if left <= 0:
            left = seconds
            if not self._waiting:
                self.put(wire.HEARTBEAT)
        if not self.over:
            loop.call_later(left, self.fill_silence, seconds)
