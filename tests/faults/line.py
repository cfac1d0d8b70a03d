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
        self.target_port = target_port
        self._loop = asyncio.new_event_loop()
        self._connected = asyncio.Event()
        self._connected.set()
        self._cut_text = b""
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
        self._loop.call_soon_threadsafe(self._connected.clear)

    def cut_at(self, text: bytes) -> None:
        """Cut the line when a client sends the text, which arrives after `reconnect` only."""
        self._loop.call_soon_threadsafe(setattr, self, "_cut_text", text)

    @property
    def is_cut(self) -> bool:
        return not self._connected.is_set()

    def reconnect(self) -> None:
        self._loop.call_soon_threadsafe(self._connected.set)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = asyncio.start_server(self._connect, "127.0.0.1", self.port)
        self._loop.run_until_complete(server)
        self._ready.set()
        self._loop.run_forever()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._connected.wait()
        target = await asyncio.open_connection("127.0.0.1", self.target_port)
        sent = self._forward(reader, target[1], from_client=True)
        await asyncio.gather(sent, self._forward(target[0], writer))

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, from_client: bool = False
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(2**16):
                if from_client and self._cut_text and self._cut_text in data:
                    self._cut_text = b""
                    self._connected.clear()
                await self._connected.wait()
                writer.write(data)
                await writer.drain()
        # The end of a connection is not noticed on the other side of a cut either.
        await self._connected.wait()
        writer.close()
