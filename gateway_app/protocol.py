"""uvicorn's HTTP, less patient: a request whose head does not come is not waited for."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

from agents_app.conf import CONF


class ImpatientProtocol(H11Protocol):
    """uvicorn gives up on an idle connection, but not on one that sends a byte now and then."""

    head_seconds = CONF.body_seconds
    _silent_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._silent_since = self.loop.time()
        self._look_again(self.head_seconds)

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
