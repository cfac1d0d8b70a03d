"""Lines are rendered on a thread, never on the event loop that all clients share."""

import asyncio
import threading
from collections.abc import AsyncGenerator

from agents_app.output import LogLine, LogReader, Progress
from gateway_app.streams.hub import Hub
from gateway_app.streams.requests import OutputRequest, Subscriber
from gateway_app.streams.run_output import output_events
from gateway_app.streams.send_buffer import SendBuffer

SUBSCRIBER = Subscriber(1, None, None)


async def _read(stream: AsyncGenerator[bytes, None]) -> list[bytes]:
    return [data async for data in stream]


def test_the_last_lines_of_a_run_are_rendered_on_a_thread(monkeypatch):
    makers: list[threading.Thread] = []

    def unfinished(_reader: LogReader, *, ended: bool) -> list[LogLine]:
        makers.append(threading.current_thread())
        return []

    async def followed() -> None:
        hub = Hub(heartbeat_seconds=60)
        hub.runs[1] = Progress(1, state="succeeded")
        await _read(
            output_events(hub, OutputRequest(SUBSCRIBER, 1, styled=True), SendBuffer(SUBSCRIBER))
        )

    monkeypatch.setattr(LogReader, "unfinished", unfinished)
    asyncio.run(followed())
    (maker,) = makers
    assert maker is not threading.current_thread()
