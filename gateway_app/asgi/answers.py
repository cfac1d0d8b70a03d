"""What is answered in front of Django, as JSON; nothing that was not stored is ever a success."""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gateway_app.asgi.body import BodyError, Receive, Send

RETRY_SECONDS = 5
LINGER_SECONDS, LINGER_BYTES = 1.0, 64 * 2**20


@dataclass(frozen=True, slots=True)
class Answer:
    """`hang_up`: the rest of the body is not wanted, and the connection ends."""

    status: int
    content: dict[str, Any]
    headers: tuple[tuple[bytes, bytes], ...] = ()
    hang_up: bool = False

    async def send(self, receive: Receive, send: Send) -> None:
        body = json.dumps(self.content).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            *self.headers,
            *([(b"connection", b"close")] if self.hang_up else []),
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": self.hang_up})
        if self.hang_up:
            await _linger(receive)
            await send({"type": "http.response.body", "body": b""})


async def _linger(receive: Receive) -> None:
    """Closed at once, with data unread, the connection is reset and the answer may be lost."""
    left = LINGER_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return


def bad_body(error: BodyError) -> Answer:
    answer = error_answer(error.status, error.code, str(error), hang_up=True)
    retry = _retry_after(error.retry_after_seconds) if error.retry_after_seconds else ()
    return Answer(answer.status, answer.content, retry, hang_up=True)


def unavailable() -> Answer:
    answer = error_answer(503, "unavailable", "it could not be stored; send it again")
    return Answer(answer.status, answer.content, _retry_after(RETRY_SECONDS))


def too_many_streams(most: int) -> Answer:
    answer = error_answer(
        429, "too_many_streams", f"{most} streams are open already: close some first"
    )
    return Answer(answer.status, answer.content, _retry_after(RETRY_SECONDS))


def _retry_after(seconds: int) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"retry-after", str(seconds).encode()),)


def error_answer(status: int, code: str, message: str, *, hang_up: bool = False) -> Answer:
    return Answer(status, {"error": {"code": code, "message": message}}, hang_up=hang_up)
