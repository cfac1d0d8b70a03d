"""The unsent events of one client, up to a limit; used on the event loop only."""

import asyncio

from gateway_app.streams import sse
from gateway_app.streams.requests import Subscriber

MOST_WAITING_BYTES = 1024 * 1024


class SendBuffer:
    def __init__(
        self, subscriber: Subscriber, most_waiting_bytes: int = MOST_WAITING_BYTES
    ) -> None:
        self.subscriber = subscriber
        self.is_closed = False
        self.final_event = b""
        self._most = most_waiting_bytes
        self._waiting: list[bytes] = []
        self._size = 0
        self._changed = asyncio.Event()
        self._taken_at = asyncio.get_running_loop().time()

    def put(self, data: bytes) -> None:
        """Adds events; a client that reads too slowly gets an error and has to reconnect."""
        if self.is_closed:
            return
        self._size += len(data)
        if self._size > self._most:
            self.close(sse.SLOW)
            return
        self._waiting.append(data)
        self._changed.set()

    def close(self, final_event: bytes = b"") -> None:
        """Ends the stream and drops unsent events: the client resumes after its last event."""
        if not self.is_closed:
            self.is_closed, self.final_event = True, final_event
            self._waiting.clear()
            self._changed.set()

    async def take(self) -> bytes:
        """Waits for events and returns all of them; nothing when the buffer is closed."""
        await self._changed.wait()
        self._changed.clear()
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._size = 0
        self._taken_at = asyncio.get_running_loop().time()
        return data

    def send_heartbeats(self, seconds: float) -> None:
        """Puts a heartbeat after so many seconds without an event, until the buffer is closed.

        One timer per stream: a timer per event costs more.
        """
        loop = asyncio.get_running_loop()
        left = self._taken_at + seconds - loop.time()
        if left <= 0:
            left = seconds
            if not self._waiting:
                self.put(sse.HEARTBEAT)
        if not self.is_closed:
            loop.call_later(left, self.send_heartbeats, seconds)
