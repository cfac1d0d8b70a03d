"""The JSON responses that are sent without Django; an error has the same form as in the API."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from gateway_app.asgi.body import MEGABYTE, BodyError

RETRY_SECONDS = 5
DISCARD_SECONDS, DISCARD_BYTES = 1.0, 64 * MEGABYTE


class GatewayResponse(JSONResponse):
    """With `close_connection`, the rest of the body is discarded and the connection is closed."""

    def __init__(
        self,
        content: Mapping[str, Any],
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        *,
        close_connection: bool = False,
    ) -> None:
        self.close_connection = close_connection
        if close_connection:
            headers = {**(headers or {}), "connection": "close"}
        super().__init__(content, status_code, headers)

    def render(self, content: Any) -> bytes:
        # ASCII only: text of an agent may contain lone surrogates, which UTF-8 cannot encode.
        return json.dumps(content).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self.close_connection:
            await super().__call__(scope, receive, send)
            return
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        await _discard_body(receive)
        await send({"type": "http.response.body", "body": b""})


async def _discard_body(receive: Receive) -> None:
    """A connection that is closed with unread data is reset, and the response may be lost."""
    remaining = DISCARD_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            while remaining > 0:
                message = await receive()
                remaining -= len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return


def error_response(
    status: int,
    code: str,
    message: str,
    headers: Mapping[str, str] | None = None,
    *,
    close_connection: bool = False,
) -> GatewayResponse:
    content = {"error": {"code": code, "message": message}}
    return GatewayResponse(content, status, headers, close_connection=close_connection)


def body_error_response(error: BodyError) -> GatewayResponse:
    headers = retry_after(error.retry_after_seconds) if error.retry_after_seconds else None
    return error_response(error.status, error.code, str(error), headers, close_connection=True)


def retry_after(seconds: int) -> dict[str, str]:
    return {"retry-after": str(seconds)}
