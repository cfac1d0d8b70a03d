"""A client of event streams that parses the bytes itself and keeps the last event id."""

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

NOTIFICATIONS = "/v1/notifications/stream"


@dataclass(frozen=True)
class Event:
    name: str
    data: Any
    id: int | None = None


class Stream:
    """One connection; `next` returns the next event, `lines` all lines."""

    def __init__(
        self,
        port: int,
        token: str = "",
        path: str = NOTIFICATIONS,
        *,
        after: int | None = None,
        timeout: float = 15,
        cookie: str = "",
    ) -> None:
        self.last_id = after
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        headers = {"Accept": "text/event-stream"}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        headers |= {"Cookie": cookie} if cookie else {}
        headers |= {} if after is None else {"Last-Event-ID": str(after)}
        self._connection.request("GET", path, headers=headers)
        self.socket: socket.socket = self._connection.sock
        self.response = self._connection.getresponse()
        self.status = self.response.status

    def problem(self) -> Any:
        return json.load(self.response)["error"]

    def lines(self) -> Iterator[str]:
        """Reads until the server ends the stream."""
        while line := self.response.readline():
            yield line.decode().rstrip("\n")

    def events(self) -> Iterator[Event]:
        """Parses as the standard requires: a block without data is not an event."""
        fields: dict[str, str] = {}
        for line in self.lines():
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
                continue
            if "id" in fields:
                self.last_id = int(fields["id"])
            if "data" in fields:
                key = int(fields["id"]) if "id" in fields else None
                yield Event(fields["event"], json.loads(fields["data"]), key)
            fields = {}

    def next(self) -> Event:
        return next(self.events())

    def take(self, count: int) -> list[Event]:
        events = self.events()
        return [next(events) for _ in range(count)]

    def cut(self) -> None:
        """Closes the connection at once, also during a read."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.cut()
        self._connection.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def listen(port: int, token: str, path: str = NOTIFICATIONS, **options: Any) -> Stream:
    """Opens a stream and reads its first event."""
    stream = Stream(port, token, path, **options)
    assert stream.status == 200, stream.problem()
    first = stream.next()
    assert (first.name, first.data) == ("open", {"ok": True})
    return stream
