"""The events of an output stream: lines, as fast as the client reads them, then the end."""

from collections.abc import AsyncGenerator
from functools import partial
from time import monotonic

from agents_app.output import LogLine, LogReader, Progress
from gateway_app.streams import sse
from gateway_app.streams.hub import Hub
from gateway_app.streams.requests import OutputRequest
from gateway_app.streams.send_buffer import SendBuffer


async def output_events(
    hub: Hub, request: OutputRequest, buffer: SendBuffer
) -> AsyncGenerator[bytes, None]:
    reader = LogReader(request.run_id, request.after + 1, terminal=request.styled)
    yield sse.opened()
    sent_at = monotonic()
    with hub.following(request.run_id):
        while not buffer.is_closed:
            progress = hub.runs.get(request.run_id)
            if progress and (progress.ended or progress.seq > reader.seq):
                async for data in _new_events(hub, request, reader, progress, buffer):
                    yield data
                sent_at = monotonic()
            elif monotonic() - sent_at >= hub.heartbeat_seconds:
                yield sse.HEARTBEAT
                sent_at = monotonic()
            else:
                await hub.next_poll()


async def _new_events(
    hub: Hub, request: OutputRequest, reader: LogReader, progress: Progress, buffer: SendBuffer
) -> AsyncGenerator[bytes, None]:
    while reader.seq < progress.seq and not buffer.is_closed:
        yield await hub.read(partial(_page, reader, request.styled))
        if reader.is_at_end:
            # Otherwise a stream whose rows were removed would read again and again.
            reader.seq = max(reader.seq, progress.seq)
    if progress.ended:
        yield await hub.read(partial(_rest, reader, request.styled))
        buffer.close(_end(progress) if progress.state else sse.GONE)


def _page(reader: LogReader, styled: bool) -> bytes:
    lines = reader.page()
    if styled and reader.is_at_end:
        lines += reader.unfinished(ended=False)
    return _events(lines, styled)


def _rest(reader: LogReader, styled: bool) -> bytes:
    return _events(reader.unfinished(ended=True), styled)


def _events(lines: list[LogLine], styled: bool) -> bytes:
    """An open line has no id: a client that resumes after it gets the line again."""
    return b"".join(
        sse.event(
            "line",
            line.as_styled() if styled else line.as_plain(),
            None if line.open else line.number,
        )
        for line in lines
    )


def _end(progress: Progress) -> bytes:
    finished_at = progress.finished_at and int(progress.finished_at.timestamp())
    return sse.event(
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
