"""Receives signals in front of Django, whose middleware would hold a thread for each request.

A run that waits holds its connection, but neither a thread nor a database connection.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar

import structlog
from django.db import DatabaseError, close_old_connections
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from agents_app.database import ENGINE
from agents_app.errors import DroverError
from agents_app.signals import Reply, cancel_wait, handle_signal
from gateway_app.access import RateLimit
from gateway_app.asgi import (
    SIGNALS,
    Body,
    BodyBudget,
    BodyError,
    GatewayResponse,
    body_error_response,
    error_response,
    read_headers,
    retry_after,
)
from gateway_app.signals.body import BadBody, read_fields

log = structlog.get_logger("drover.signals")
T = TypeVar("T")
MAX_BODY_BYTES = 4 * 2**20
THREADS = 8
# The pauses between calls of a handler whose reply is not done; the last one repeats.
PAUSES_SECONDS = (0.05, 0.1, 0.2, 0.3, 0.5)


class Signals:
    def __init__(self, clock: Callable[[], datetime], body_seconds: float) -> None:
        self.clock = clock
        self.body_seconds = body_seconds
        self.budget = BodyBudget()
        # High enough for a busy agent; slows down an agent in an endless loop.
        self.limit = RateLimit(rate=200, burst=400)
        self._threads = ThreadPoolExecutor(THREADS, "signals")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(ClientDisconnect):
            response = await self._respond(scope, receive)
            await response(scope, receive, send)

    async def _respond(self, scope: Scope, receive: Receive) -> GatewayResponse:
        if scope["method"] != "POST":
            message, headers = "signals are sent with POST", {"allow": "POST"}
            return error_response(
                405, "method_not_allowed", message, headers, close_connection=True
            )
        headers = read_headers(scope)
        kind, _, token = headers.get("authorization", "").partition(" ")
        token = token.strip() if kind.lower() == "bearer" else ""
        if wait := self.limit.wait_seconds(token[:60], time.monotonic()):
            return _too_many(wait)
        body = Body(receive, MAX_BODY_BYTES, self.budget)
        try:
            raw = await body.read(headers.get("content-length", ""), self.body_seconds)
            fields = read_fields(headers.get("content-type", ""), raw)
        except BodyError as error:
            return body_error_response(error)
        except BadBody as error:
            return error_response(400, "bad_body", str(error))
        finally:
            body.close()
        return await self._handle(receive, token, scope["path"].removeprefix(SIGNALS), fields)

    async def _handle(
        self, receive: Receive, token: str, name: str, fields: dict[str, Any]
    ) -> GatewayResponse:
        try:
            reply = await self._in_thread(handle_signal, token, name, fields)
            if not reply.done:
                reply = await self._until_done(receive, reply, token, name, fields)
        except DroverError as error:
            return _refusal(error)
        except DatabaseError as error:
            log.warning("signals.database_away", signal=name, error=str(error))
            return error_response(503, "unavailable", "the database does not answer: try again")
        except (ClientDisconnect, asyncio.CancelledError):
            raise
        except Exception:
            log.exception("signals.failed", signal=name)
            return error_response(500, "internal", "internal error; see the log of the gateway")
        return GatewayResponse(reply.content, 200 if reply.content.get("ok") else 409)

    async def _until_done(
        self, receive: Receive, reply: Reply, token: str, name: str, fields: dict[str, Any]
    ) -> Reply:
        try:
            async for _ in _retry_moments(receive, reply.wait_seconds):
                reply = await self._in_thread(handle_signal, token, name, fields)
                if reply.done:
                    break
            return reply
        finally:
            if not reply.done:
                with suppress(DroverError, DatabaseError):
                    await self._in_thread(cancel_wait, token, name, fields)

    async def _in_thread(
        self,
        function: Callable[[str, str, dict[str, Any], datetime], T],
        token: str,
        name: str,
        fields: dict[str, Any],
    ) -> T:
        def call() -> T:
            try:
                return function(token, name, fields, self.clock())
            except DatabaseError:
                close_old_connections()
                raise
            finally:
                ENGINE.release_connection()

        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, call)


async def _retry_moments(receive: Receive, seconds: float) -> AsyncIterator[None]:
    """Yields when the handler is to be called again, until the time is over.

    Raises ClientDisconnect as soon as the client closes the connection."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    gone = asyncio.ensure_future(receive())
    pauses = list(PAUSES_SECONDS)
    try:
        while (left := until - loop.time()) > 0:
            pause = pauses.pop(0) if len(pauses) > 1 else pauses[0]
            done, _ = await asyncio.wait({gone}, timeout=min(pause, left))
            if done:
                raise ClientDisconnect
            yield
    finally:
        gone.cancel()


# --- answers --------------------------------------------------------------------------------


def _refusal(error: DroverError) -> GatewayResponse:
    """A refused lock adds its details, such as the holder, at the top level of the answer."""
    more = {} if error.http_status == 401 else getattr(error, "more", {})
    content = {**more, "error": {"code": error.code, "message": str(error)}}
    headers = {"www-authenticate": "Bearer"} if error.http_status == 401 else None
    return GatewayResponse(content, error.http_status, headers)


def _too_many(seconds: int) -> GatewayResponse:
    message = f"too many signals: try again in {seconds} s"
    return error_response(429, "rate_limited", message, retry_after(seconds), close_connection=True)
