"""Streams in front of Django: it decides who may have which, and is done before it begins.

Inside Django an open stream would keep a thread and a connection to the database each.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from gateway_app.asgi import ENDING, App, Message, Receive, Send, too_many_streams
from gateway_app.streams.following import follow
from gateway_app.streams.hub import Hub
from gateway_app.streams.listening import listen
from gateway_app.streams.outlet import SendBuffer
from gateway_app.streams.ticket import TICKET, Listen, Ticket

SUFFIX = "/stream"
MOST_OF_A_TENANT = 1000


class Streams:
    def __init__(self, app: App, hub: Hub, most_of_a_tenant: int = MOST_OF_A_TENANT) -> None:
        self.app = app
        self.hub = hub
        self.most_of_a_tenant = most_of_a_tenant

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].endswith(SUFFIX):
            await self.app(scope, receive, send)
            return
        said: list[Message] = []

        async def keep(message: Message) -> None:
            said.append(message)

        await self.app(scope, receive, keep)
        ticket: Ticket | None = scope.pop(TICKET, None)
        if ticket is None or not said or said[0]["status"] != 200:
            for message in said:
                await send(message)
        elif self.hub.streams_of(ticket.guest.tenant_id) >= self.most_of_a_tenant:
            await too_many_streams(self.most_of_a_tenant).send(receive, send)
        else:
            await self._stream(ticket, said[0], scope, receive, send)

    async def _stream(
        self, ticket: Ticket, start: Message, scope: Message, receive: Receive, send: Send
    ) -> None:
        outlet = SendBuffer(ticket.guest)
        scope[ENDING] = outlet.end
        gone = asyncio.create_task(_until_gone(receive))
        gone.add_done_callback(lambda _: outlet.end())
        try:
            await send({**start, "headers": _endless(start["headers"])})
            async with self.hub.visit(outlet), aclosing(self._events(ticket, outlet)) as events:
                async for data in events:
                    if data:
                        await send({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": outlet.last_words})
        finally:
            gone.cancel()

    def _events(self, ticket: Ticket, outlet: SendBuffer) -> AsyncGenerator[bytes, None]:
        if isinstance(ticket, Listen):
            return listen(self.hub, ticket, outlet)
        return follow(self.hub, ticket, outlet)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _endless(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if name.lower() != b"content-length"]
