"""How a process reports that it is ready, and how the supervisor checks it."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

READY_FILE = "DROVER_READY_FILE"
_ANSWER_SECONDS = 5.0
_LONGEST_ANSWER = 65536

ReadyCheck = Callable[[], Awaitable[bool]]
Connecting = Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]


def report_ready(**_: object) -> None:
    """Create the ready file; called by a process when it is ready."""
    if path := os.environ.get(READY_FILE):
        Path(path).touch(0o600)


def redis_answers(socket: Path, password: str) -> ReadyCheck:
    request = f"AUTH {password}\r\nPING\r\nQUIT\r\n".encode()

    async def check() -> bool:
        # A server that is still loading its data answers -LOADING.
        reply = await _exchange(asyncio.open_unix_connection(socket), request)
        return reply.startswith(b"+OK\r\n+PONG")

    return check


def http_answers(port: int, path: str, status: int = 200) -> ReadyCheck:
    async def check() -> bool:
        reply = await _get(port, path)
        return reply.split()[1:2] == [str(status).encode()]

    return check


async def _get(port: int, path: str) -> bytes:
    request = f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n".encode()
    return await _exchange(asyncio.open_connection("127.0.0.1", port), request)


async def _exchange(connecting: Connecting, request: bytes) -> bytes:
    """The whole answer until the connection is closed; empty if the server is not reachable."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await connecting
            try:
                writer.write(request)
                return await reader.read(_LONGEST_ANSWER)
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return b""
