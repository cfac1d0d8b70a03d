"""uvicorn's HTTP, less patient: with heads that do not come, answers nobody reads, and streams."""

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from agents_app.conf import CONF

# Where in a request's scope it is said how to end an answer that has no end of its own.
ENDING = "drover.ending"
UNSENT_BYTES = 64 * 1024
# Whoever reads nothing of an answer for so long is not waited for.
TAKES_NOTHING_SECONDS = 60.0


class ImpatientProtocol(H11Protocol):
    """uvicorn gives up on an idle connection, but not on one that sends a byte now and then."""

    head_seconds = CONF.body_seconds
    _silent_since = 0.0
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._silent_since = self.loop.time()
        self._look_again(self.head_seconds)
        # What is not sent waits with us, where it is counted, and not in the kernel by megabytes.
        connection = transport.get_extra_info("socket")
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)

    def shutdown(self) -> None:
        """A stream would never end by itself, and the server waits for it."""
        super().shutdown()
        scope: Any = self.scope  # None before the first request
        if scope and ENDING in scope:
            scope[ENDING]()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self.loop.call_later(TAKES_NOTHING_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()

    def on_response_complete(self) -> None:
        self._silent_since = self.loop.time()
        super().on_response_complete()

    def _look_again(self, seconds: float) -> None:
        # One timer a connection, not one a request: setting them costs more than looking.
        self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        if self.transport.is_closing():
            return
        waited = self.loop.time() - self._silent_since
        between_requests = self.cycle is None or self.cycle.response_complete
        if between_requests and waited >= self.head_seconds:
            self.transport.close()
        else:
            self._look_again(self.head_seconds - waited if between_requests else self.head_seconds)
