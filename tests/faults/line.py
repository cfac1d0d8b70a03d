"""A line between two programs that a test cuts: connections stay open and carry nothing."""

import asyncio
import threading
from contextlib import suppress

from tests.parts.ports import free_port


class Line:
    """Forwards connections to a port of this machine. What is sent while it is cut arrives late,
    as TCP delivers it after a network partition."""

    def __init__(self, target_port: int) -> None:
        self.port = free_port()
        self._target_port = target_port
        self._loop = asyncio.new_event_loop()
        self._whole = asyncio.Event()
        self._whole.set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> "Line":
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def cut(self) -> None:
        self._loop.call_soon_threadsafe(self._whole.clear)

    def heal(self) -> None:
        self._loop.call_soon_threadsafe(self._whole.set)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = asyncio.start_server(self._connect, "127.0.0.1", self.port)
        self._loop.run_until_complete(server)
        self._ready.set()
        self._loop.run_forever()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._whole.wait()
        target = await asyncio.open_connection("127.0.0.1", self._target_port)
        await asyncio.gather(self._forward(reader, target[1]), self._forward(target[0], writer))

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(2**16):
                await self._whole.wait()
                writer.write(data)
                await writer.drain()
        # The end of a connection is not noticed on the other side of a cut either.
        await self._whole.wait()
        writer.close()
