"""The output of a run as a stream that goes on after a broken connection."""

import json
import time
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

import httpx

from agents_app.errors import DroverError, NotFound
from agents_app.remote.connection import Connection, NotAllowed, RemoteUnreachable, refuse_problem
from agents_app.remote.connection import unreachable as cannot_reach
from agents_app.remote.values import ReceivedLine, read_line

# The waits before connecting again; the last one repeats until GIVE_UP_SECONDS have passed.
WAITS = (0.2, 0.5, 1.0, 2.0, 5.0)
GIVE_UP_SECONDS = 120.0
_REFUSED = {"unauthorized": NotAllowed, "tenant_disabled": NotAllowed, "not_found": NotFound}


def follow_run(
    api: Connection,
    run_id: int,
    *,
    after: int | None = None,
    give_up_at: float | None = None,
    broken: Callable[[str], None] = lambda _: None,
) -> Iterator[ReceivedLine | None]:
    """The lines of a run after the line `after`, until the run ends.

    A dropped connection is opened again after the last line that came. Yields None at the time
    `give_up_at` of the monotonic clock. `broken` is told once about each broken connection."""
    last, failures, since = after, 0, monotonic()
    while True:
        try:
            for name, data, event_id in _events(api, run_id, last, give_up_at):
                failures, since = 0, monotonic()
                if name == "end":
                    return
                if name == "late":
                    yield None
                    return
                if name == "error":
                    _raise_final(data)
                    break
                if name == "line":
                    last = event_id if event_id is not None else last
                    yield read_line(data)
        except (httpx.HTTPError, RemoteUnreachable) as error:
            if monotonic() - since > GIVE_UP_SECONDS:
                raise cannot_reach(api.address.url, error) from None
            if not failures:
                broken(f"run {run_id}: the connection broke; connecting again")
        if give_up_at is not None and monotonic() >= give_up_at:
            yield None
            return
        time.sleep(WAITS[min(failures, len(WAITS) - 1)])
        failures += 1


def _raise_final(data: Any) -> None:
    """Raise what a new connection would get again; a slow client may connect again."""
    kind: type[DroverError] | None = _REFUSED.get(data["error_code"])
    if kind is not None:
        raise kind(data["error"])


def _events(
    api: Connection, run_id: int, last: int | None, give_up_at: float | None
) -> Iterator[tuple[str, Any, int | None]]:
    """(name, data, id) of each event of one connection."""
    path = f"/runs/{run_id}/logs/stream"
    read_seconds = None if give_up_at is None else max(0.1, give_up_at - monotonic())
    with api.stream(path, last, read_seconds) as response:
        if not response.is_success:
            response.read()
        refuse_problem(api.address.url, response)
        fields: dict[str, str] = {}
        try:
            for line in response.iter_lines():
                if line:
                    name, _, value = line.partition(":")
                    fields[name] = value.removeprefix(" ")
                    continue
                if "data" in fields:
                    key = int(fields["id"]) if "id" in fields else None
                    yield fields.get("event", "message"), json.loads(fields["data"]), key
                fields = {}
                if give_up_at is not None and monotonic() >= give_up_at:
                    yield "late", None, None
        except httpx.ReadTimeout:
            if give_up_at is None or monotonic() < give_up_at:
                raise
            yield "late", None, None
