"""A stream of what a run prints: whole lines, as fast as the client reads them, then its end."""

from collections.abc import AsyncGenerator, Callable
from functools import partial
from time import monotonic

from agents_app.output import Progress
from gateway_app.streams import wire
from gateway_app.streams.hub import Hub
from gateway_app.streams.log_lines import AnyLine, LineReader, LogReader
from gateway_app.streams.outlet import SendBuffer
from gateway_app.streams.ticket import Follow


async def follow(hub: Hub, ticket: Follow, outlet: SendBuffer) -> AsyncGenerator[bytes, None]:
    lines = _reader(ticket)
    yield wire.opened()
    sent_at = monotonic()
    with hub.follower(ticket.run_id):
        while not outlet.over:
            progress = hub.runs.get(ticket.run_id)
            if progress and (progress.ended or progress.seq > lines.seq):
                async for data in _news(hub, ticket, lines, progress, outlet):
                    yield data
                sent_at = monotonic()
            elif monotonic() - sent_at >= hub.heartbeat_seconds:
                yield wire.HEARTBEAT
                sent_at = monotonic()
            else:
                await hub.next_look()


def _reader(ticket: Follow) -> LineReader | LogReader:
    if ticket.styled:
        return LogReader(ticket.run_id, ticket.after)
    return LineReader(ticket.run_id)


async def _news(
    hub: Hub, ticket: Follow, lines: LineReader | LogReader, progress: Progress, outlet: SendBuffer
) -> AsyncGenerator[bytes, None]:
    while lines.seq < progress.seq and not outlet.over:
        yield await hub.read(partial(_events, lines.page, ticket.after))
    if progress.ended:
        yield await hub.read(partial(_events, lines.rest, ticket.after))
        outlet.end(_end(progress) if progress.state else wire.GONE)


def _events(read: Callable[[], list[AnyLine]], after: int) -> bytes:
    """Those that the client has not seen: to know their numbers, all of them were read.

    A line that grows has no id: who comes back after it wants to see it again.
    """
    return b"".join(
        wire.event("line", line.shown(), None if line.open else line.number)
        for line in read()
        if line.number > after
    )


def _end(progress: Progress) -> bytes:
    finished_at = progress.finished_at and int(progress.finished_at.timestamp())
    return wire.event(
        "end",
        {
            "run_id": progress.run_id,
            "state": progress.state,
            "status": progress.state,
            "exit_code": progress.exit_code,
            "error": progress.error,
            "completed_at": finished_at,
        },
    )
