"""A stream of notifications: first what was missed, then what happens, each entry once."""

from collections.abc import AsyncGenerator
from functools import partial

from agents_app.events import MAX_TAIL_ENTRIES, entries_between
from gateway_app.streams import wire
from gateway_app.streams.hub import Hub
from gateway_app.streams.notices import Wanted
from gateway_app.streams.outlet import SendBuffer
from gateway_app.streams.ticket import Listen


async def listen(hub: Hub, ticket: Listen, outlet: SendBuffer) -> AsyncGenerator[bytes, None]:
    with hub.news():
        while hub.cursor is None and not outlet.over:
            await hub.next_look()
        position = (hub.cursor or 0) if ticket.after is None else ticket.after
        # With a place to come back to, also for somebody who never hears more than this.
        yield wire.opened(position)
        while not outlet.over and position != hub.cursor:
            # Ahead of us: it comes from another process, which has looked a moment later.
            if hub.cursor is None or position > hub.cursor:
                await hub.next_look()
                continue
            data, position = await hub.read(partial(_history, ticket.wanted, position, hub.cursor))
            yield data
        # Nothing was awaited since the cursor was looked at: no gap, and nothing twice.
        with hub.listener(ticket.wanted, outlet):
            outlet.fill_silence(hub.heartbeat_seconds)
            while not outlet.over:
                yield await outlet.take()


def _history(wanted: Wanted, after: int, up_to: int) -> tuple[bytes, int]:
    """A page of it, and up to where it goes; the client's reading sets the pace."""
    told = entries_between(wanted.tenant_id, after, up_to)
    return wanted.events(told), told[-1].id if len(told) == MAX_TAIL_ENTRIES else up_to
