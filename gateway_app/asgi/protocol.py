"""uvicorn's HTTP protocol with time limits, an end for streams, and the socket of runs."""

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from agents_app.conf import CONF
from gateway_app.asgi.run_socket import RunSocketApp

# The key of a scope under which a response without end has its function that ends it.
END_STREAM = "drover.end_stream"
UNSENT_BYTES = 64 * 1024
# A connection whose client reads nothing of a response for so long is aborted.
UNREAD_SECONDS = 60.0


class GatewayProtocol(H11Protocol):
    """uvicorn closes an idle connection, but not one that sends a byte now and then."""

    head_seconds = CONF.body_seconds
    _idle_since = 0.0
    _abort_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        connection = transport.get_extra_info("socket")
        is_run = connection.family == socket.AF_UNIX
        if is_run:
            # Before all else: after an error below, a run must not reach the whole gateway.
            self.app = RunSocketApp(self.app, connection)
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._check_idle_after(self.head_seconds)
        if not is_run:
            # Unsent data stays in this process, where it is counted, not in the kernel's buffers.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)

    def shutdown(self) -> None:
        """Ends a stream, which would never end by itself and which the server waits for."""
        super().shutdown()
        scope: Any = self.scope  # None before the first request
        if scope and END_STREAM in scope:
            scope[END_STREAM]()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._abort_timer = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._abort_timer is not None:
            self._abort_timer.cancel()

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def _check_idle_after(self, seconds: float) -> None:
        # One timer per connection, not per request: setting a timer costs more than the check.
        self.loop.call_later(seconds, self._check_idle)

    def _check_idle(self) -> None:
        if self.transport.is_closing():
            return
        idle_seconds = self.loop.time() - self._idle_since
        between_requests = self.cycle is None or self.cycle.response_complete
        if between_requests and idle_seconds >= self.head_seconds:
            self.transport.close()
        else:
            remaining = self.head_seconds - idle_seconds if between_requests else self.head_seconds
            self._check_idle_after(remaining)
