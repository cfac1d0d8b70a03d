"""The events of a notification stream: first missed journal entries, then new ones, each once."""

from collections.abc import AsyncGenerator
from functools import partial

from agents_app.events import MAX_TAIL_ENTRIES, entries_between
from gateway_app.streams import sse
from gateway_app.streams.hub import Hub
from gateway_app.streams.journal_filter import JournalFilter
from gateway_app.streams.requests import NotificationRequest
from gateway_app.streams.send_buffer import SendBuffer


async def notification_events(
    hub: Hub, request: NotificationRequest, buffer: SendBuffer
) -> AsyncGenerator[bytes, None]:
    with hub.reading_journal():
        while hub.cursor is None and not buffer.is_closed:
            await hub.next_poll()
        position = (hub.cursor or 0) if request.after is None else request.after
        # With an id, so that a client that gets no other event can resume after it.
        yield sse.opened(position)
        while not buffer.is_closed and position != hub.cursor:
            # An id ahead of the cursor comes from another process, which has polled a moment later.
            if hub.cursor is None or position > hub.cursor:
                await hub.next_poll()
                continue
            history = partial(_history, request.wanted, position, hub.cursor)
            data, position = await hub.read(history)
            yield data
        # Nothing was awaited since the cursor was compared: no gap, and no entry twice.
        with hub.subscribed(request.wanted, buffer):
            buffer.send_heartbeats(hub.heartbeat_seconds)
            while not buffer.is_closed:
                yield await buffer.take()


def _history(wanted: JournalFilter, after: int, up_to: int) -> tuple[bytes, int]:
    """One page of events, and the id of its last entry; the client's reading sets the pace."""
    entries = entries_between(wanted.tenant_id, after, up_to)
    return wanted.events(entries), entries[-1].id if len(entries) == MAX_TAIL_ENTRIES else up_to
