"""Streams in front of Django: Django authorizes a request and is done before its stream begins.

Inside Django an open stream would hold a thread and a connection to the database.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway_app.asgi import END_STREAM, RETRY_SECONDS, error_response, retry_after
from gateway_app.streams.hub import Hub
from gateway_app.streams.notifications import notification_events
from gateway_app.streams.requests import SCOPE_KEY, NotificationRequest, StreamRequest
from gateway_app.streams.run_output import output_events
from gateway_app.streams.send_buffer import SendBuffer

MOST_PER_TENANT = 1000


class Streams:
    """The ASGI application of all streams: Django authorizes, then the stream begins."""

    def __init__(self, app: ASGIApp, hub: Hub, most_per_tenant: int = MOST_PER_TENANT) -> None:
        self.app = app
        self.hub = hub
        self.most_per_tenant = most_per_tenant

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response: list[Message] = []

        async def keep(message: Message) -> None:
            response.append(message)

        await self.app(scope, receive, keep)
        request: StreamRequest | None = scope.pop(SCOPE_KEY, None)
        if request is None or not response or response[0]["status"] != 200:
            for message in response:
                await send(message)
        elif self.hub.count_streams(request.subscriber.tenant_id) >= self.most_per_tenant:
            text = f"{self.most_per_tenant} streams are open: close one first"
            refusal = error_response(429, "too_many_streams", text, retry_after(RETRY_SECONDS))
            await refusal(scope, receive, send)
        else:
            await self._stream(request, response[0], scope, receive, send)

    async def _stream(
        self, request: StreamRequest, start: Message, scope: Scope, receive: Receive, send: Send
    ) -> None:
        buffer = SendBuffer(request.subscriber)
        scope[END_STREAM] = buffer.close
        disconnected = asyncio.create_task(_until_disconnected(receive))
        disconnected.add_done_callback(lambda _: buffer.close())
        try:
            await send({**start, "headers": _without_length(start["headers"])})
            async with self.hub.open(buffer), aclosing(self._events(request, buffer)) as events:
                async for data in events:
                    if data:
                        await send({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": buffer.final_event})
        finally:
            disconnected.cancel()

    def _events(self, request: StreamRequest, buffer: SendBuffer) -> AsyncGenerator[bytes, None]:
        if isinstance(request, NotificationRequest):
            return notification_events(self.hub, request, buffer)
        return output_events(self.hub, request, buffer)


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _without_length(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if name.lower() != b"content-length"]
