"""What is slow about one client's log never holds up the event loop, which all clients share."""

import asyncio
import threading
from collections.abc import AsyncGenerator

from agents_app.output.printed import Progress
from gateway_app.streams.following import follow
from gateway_app.streams.hub import Hub
from gateway_app.streams.log_lines import AnyLine, LogReader
from gateway_app.streams.outlet import SendBuffer
from gateway_app.streams.ticket import Follow, Subscriber

GUEST = Subscriber(1, None, None)


async def _read(stream: AsyncGenerator[bytes, None]) -> list[bytes]:
    return [data async for data in stream]


def test_the_last_lines_of_a_run_are_made_beside_the_event_loop(monkeypatch):
    makers: list[threading.Thread] = []

    def rest(_reader: LogReader) -> list[AnyLine]:
        makers.append(threading.current_thread())
        return []

    async def followed() -> None:
        hub = Hub(heartbeat_seconds=60)
        hub.runs[1] = Progress(1, state="succeeded")
        await _read(follow(hub, Follow(GUEST, 1, styled=True), SendBuffer(GUEST)))

    monkeypatch.setattr(LogReader, "rest", rest)
    asyncio.run(followed())
    (maker,) = makers
    assert maker is not threading.current_thread()
