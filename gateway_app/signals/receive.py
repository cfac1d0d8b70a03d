"""Receives signals in front of Django, whose middleware would hold a thread for each request.

A run that waits holds its connection, but neither a thread nor a database connection.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

import structlog
from django.db import DatabaseError, close_old_connections
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from agents_app.database import ENGINE
from agents_app.errors import DroverError
from agents_app.models import Run
from agents_app.runs import TOKEN_PREFIX
from agents_app.signals import (
    SIGNALS,
    SMALL_BODY_BYTES,
    Reply,
    Unauthorized,
    authenticate_run,
    cancel_wait,
    handle_signal,
)
from gateway_app.access import (
    RateLimit,
    TooMany,
    bearer_token,
    client_of,
    forget_token,
    look_up_token,
    was_valid,
)
from gateway_app.asgi import (
    MEGABYTE,
    RUN_SOCKET_USER,
    SIGNALS_PATH,
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
LARGE_BYTES, SMALL_BYTES = 64 * MEGABYTE, 16 * MEGABYTE
THREADS = 8
# The pauses between calls of a handler whose reply is not done; the last one repeats.
PAUSES_SECONDS = (0.05, 0.1, 0.2, 0.3, 0.5)


@dataclass(slots=True)
class ReceivedSignal:
    """A signal with a token that was valid; its body is parsed when a thread needs the fields."""

    token: str = field(repr=False)
    name: str
    content_type: str
    body: bytes = b""
    _fields: dict[str, Any] | None = None

    def fields(self) -> dict[str, Any]:
        """Raises BadBody."""
        if self._fields is None:
            self._fields = read_fields(self.content_type, self.body)
            self.body = b""
        return self._fields


class Signals:
    """The order is fixed: token, body, and parsing on a thread.

    Parsing a body of four megabytes takes seconds, in which the event loop would stand still."""

    def __init__(self, clock: Callable[[], datetime], body_seconds: float) -> None:
        self.clock = clock
        self.body_seconds = body_seconds
        self.budget = BodyBudget(LARGE_BYTES, SMALL_BYTES)
        # High enough for a busy agent; slows down an agent in an endless loop.
        self.limit = RateLimit(rate=200, burst=400)
        # Wrong tokens by address, or by the run that a client of the socket of runs claims to be:
        # each one costs a query.
        self.wrong_tokens = RateLimit(rate=20, burst=200)
        # Those of all processes of one user on the socket of runs.
        self.wrong_tokens_of_user = RateLimit(rate=100, burst=1000)
        self._threads = ThreadPoolExecutor(THREADS, "signals")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(ClientDisconnect):
            response = await self._respond(scope, receive)
            await response(scope, receive, send)

    async def _respond(self, scope: Scope, receive: Receive) -> GatewayResponse:
        if scope["method"] != "POST":
            message, allowed = "signals are sent with POST", {"allow": "POST"}
            return error_response(
                405, "method_not_allowed", message, allowed, close_connection=True
            )
        headers = read_headers(scope)
        signal = ReceivedSignal(
            bearer_token(headers.get("authorization", "")),
            scope["path"].removeprefix(SIGNALS_PATH),
            headers.get("content-type", ""),
        )
        try:
            if not was_valid(signal.token):
                await self._check_token(signal.token, scope)
            if wait := self.limit.wait_seconds(signal.token[:60], time.monotonic()):
                raise TooMany(wait)
        except TooMany as error:
            return _too_many(error.retry_after_seconds)
        except (DroverError, DatabaseError) as error:
            return _failure(signal.name, error, close_connection=True)
        return await self._handle(receive, signal, headers.get("content-length", ""))

    async def _check_token(self, token: str, scope: Scope) -> None:
        """Raises Unauthorized or Superseded, or TooMany after too many wrong tokens."""
        client, through_socket = client_of(scope), RUN_SOCKET_USER in scope
        look_up = self._look_up_through_socket if through_socket else self._look_up
        if await self._in_thread(lambda: look_up(token, client)) is None:
            raise Unauthorized("missing or invalid run token")

    def _look_up(self, token: str, client: str) -> Run | None:
        def find(token: str) -> Run | None:
            with suppress(Unauthorized):
                return authenticate_run(token, self.clock())
            return None

        return look_up_token(token, client, find, self.wrong_tokens)

    def _look_up_through_socket(self, token: str, client: str) -> Run | None:
        """The runs of one user are one client. A run that repeats a wrong token, as after its end,
        uses up the smaller limit of the run that it claims to be, and keeps out no other run. The
        client chooses this claim, so the limit of the user holds as well."""
        claimed = token.removeprefix(TOKEN_PREFIX).partition("_")[0]
        return look_up_token(
            token,
            client,
            lambda token: self._look_up(token, f"{client} {claimed}"),
            self.wrong_tokens_of_user,
        )

    async def _handle(
        self, receive: Receive, signal: ReceivedSignal, announced_length: str
    ) -> GatewayResponse:
        try:
            reply = await self._first_reply(receive, signal, announced_length)
            if not reply.done:
                reply = await self._until_done(receive, reply, signal)
        except BodyError as error:
            return body_error_response(error)
        except BadBody as error:
            return error_response(400, "bad_body", str(error))
        except (DroverError, DatabaseError) as error:
            if isinstance(error, Unauthorized):
                forget_token(signal.token)
            return _failure(signal.name, error)
        except (ClientDisconnect, asyncio.CancelledError):
            raise
        except Exception:
            log.exception("signals.failed", signal=signal.name)
            return error_response(500, "internal", "internal error; see the log of the gateway")
        return GatewayResponse(reply.content, 200 if reply.content.get("ok") else 409)

    async def _first_reply(
        self, receive: Receive, signal: ReceivedSignal, announced_length: str
    ) -> Reply:
        declared = SIGNALS.get(signal.name)
        limit = declared.body_limit_bytes if declared else SMALL_BODY_BYTES
        body = Body(receive, limit, self.budget, signal.token)
        try:
            signal.body = await body.read(announced_length, self.body_seconds)
            return await self._call(handle_signal, signal)
        finally:
            body.close()

    async def _until_done(self, receive: Receive, reply: Reply, signal: ReceivedSignal) -> Reply:
        try:
            async for _ in _retry_moments(receive, reply.wait_seconds):
                reply = await self._call(handle_signal, signal)
                if reply.done:
                    break
            return reply
        finally:
            if not reply.done:
                with suppress(DroverError, DatabaseError):
                    await self._call(cancel_wait, signal)

    async def _call(
        self, function: Callable[[str, str, dict[str, Any], datetime], T], signal: ReceivedSignal
    ) -> T:
        return await self._in_thread(
            lambda: function(signal.token, signal.name, signal.fields(), self.clock())
        )

    async def _in_thread(self, function: Callable[[], T]) -> T:
        def call() -> T:
            try:
                return function()
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


def _failure(
    name: str, error: DroverError | DatabaseError, *, close_connection: bool = False
) -> GatewayResponse:
    """A refused lock adds its details, such as the holder, at the top level of the answer."""
    if isinstance(error, DatabaseError):
        log.warning("signals.database_away", signal=name, error=str(error))
        message = "the database does not answer: try again"
        return error_response(503, "unavailable", message, close_connection=close_connection)
    more = {} if error.http_status == 401 else getattr(error, "more", {})
    content = {**more, "error": {"code": error.code, "message": str(error)}}
    headers = {"www-authenticate": "Bearer"} if error.http_status == 401 else None
    return GatewayResponse(content, error.http_status, headers, close_connection=close_connection)


def _too_many(seconds: int) -> GatewayResponse:
    message = f"too many signals: try again in {seconds} s"
    return error_response(429, "rate_limited", message, retry_after(seconds), close_connection=True)
