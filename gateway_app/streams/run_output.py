"""The events of an output stream: lines, as fast as the client reads them, then the end."""

from collections.abc import AsyncGenerator
from functools import partial
from time import monotonic
from typing import Any

from agents_app.clock import iso
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
        yield await hub.read(partial(_page, reader, request))
        if reader.is_at_end:
            # Otherwise a stream whose rows were removed would read again and again.
            reader.seq = max(reader.seq, progress.seq)
    if progress.ended:
        yield await hub.read(partial(_rest, reader, request))
        buffer.close(_end(progress, request) if progress.state else sse.GONE)


def _page(reader: LogReader, request: OutputRequest) -> bytes:
    lines = reader.page()
    if request.styled and reader.is_at_end:
        lines += reader.unfinished(ended=False)
    return _events(lines, request)


def _rest(reader: LogReader, request: OutputRequest) -> bytes:
    return _events(reader.unfinished(ended=True), request)


def _events(lines: list[LogLine], request: OutputRequest) -> bytes:
    """An open line has no id: a client that resumes after it gets the line again."""
    return b"".join(
        sse.event("line", _line(line, request), None if line.open else line.number)
        for line in lines
    )


def _line(line: LogLine, request: OutputRequest) -> dict[str, Any]:
    shown = line.as_styled() if request.styled else line.as_plain()
    return shown | {"at": iso(line.at)} if request.iso_times else shown


def _end(progress: Progress, request: OutputRequest) -> bytes:
    finished_at = sse.time(progress.finished_at, iso_times=request.iso_times)
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
