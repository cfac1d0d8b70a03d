"""A few unfinished bodies keep out no other request: shares of memory and a minimum rate."""

import asyncio
import os
import socket
import time
from collections.abc import Sequence
from typing import Any

import pytest

from gateway_app.access.client import client_of
from gateway_app.asgi import body as body_module
from gateway_app.asgi.body import SMALL_BYTES, Body, BodyBudget, TooBusy, TooSlow
from gateway_app.asgi.run_socket import RunSocketApp

MEGABYTE = 2**20


def budget() -> BodyBudget:
    return BodyBudget(4 * MEGABYTE, MEGABYTE)


class SlowClient:
    """Sends the pieces with a pause before each, and then nothing more."""

    def __init__(self, pieces: Sequence[bytes], pause_seconds: float = 0) -> None:
        self.pieces = list(pieces)
        self.pause_seconds = pause_seconds

    async def __call__(self) -> dict[str, Any]:
        await asyncio.sleep(self.pause_seconds if self.pieces else 3600)
        return {"type": "http.request", "body": self.pieces.pop(0), "more_body": True}


# --- shares ---------------------------------------------------------------------------------


def test_one_client_can_use_half_of_the_memory():
    shared = budget()
    shared.take("mallory", 0, SMALL_BYTES + 2 * MEGABYTE)
    with pytest.raises(TooBusy, match="from your address"):
        shared.take("mallory", SMALL_BYTES, SMALL_BYTES + 1)
    shared.take("ann", 0, SMALL_BYTES + MEGABYTE)


def take_all(shared: BodyBudget, *clients: str) -> None:
    """Takes in turn whatever these clients get, with bodies of two megabytes."""
    for client in clients:
        for size in range(0, 2 * MEGABYTE, 1024):
            try:
                shared.take(client, size, size + 1024)
            except TooBusy:
                break


@pytest.mark.parametrize("count", [2, 3, 4])
def test_several_clients_leave_room_for_bodies_of_another_one(count: int):
    """Guard: with a half for each client, two clients took all."""
    shared = budget()
    for _ in range(20):
        take_all(shared, *(f"mallory {number}" for number in range(count)))
    shared.take("ann", 0, SMALL_BYTES // 4)
    shared.take("bob", SMALL_BYTES, SMALL_BYTES + 2 * MEGABYTE // 2**count)
    with pytest.raises(TooBusy, match="at once"):
        shared.take("joe", SMALL_BYTES, SMALL_BYTES + 2 * MEGABYTE)


def test_large_bodies_keep_out_no_small_ones_of_the_same_client():
    shared = budget()
    for _ in range(2):
        shared.take("proxy", 0, SMALL_BYTES + MEGABYTE)
    with pytest.raises(TooBusy):
        shared.take("proxy", 0, SMALL_BYTES + 1)
    shared.take("proxy", 0, SMALL_BYTES)


def test_a_refused_piece_takes_nothing():
    shared = budget()
    with pytest.raises(TooBusy):
        shared.take("ann", 0, SMALL_BYTES + 5 * MEGABYTE)
    assert shared.used_bytes == 0


def test_all_bytes_are_given_back():
    shared = budget()
    sizes = (0, 1, SMALL_BYTES, SMALL_BYTES + 1, MEGABYTE)
    for _ in range(100):
        for size in sizes:
            shared.take("ann", 0, size // 2)
            shared.take("ann", size // 2, size)
            shared.give_back("ann", size)
    assert shared.used_bytes == 0
    assert not shared._small.by_client and not shared._large.by_client


def test_the_clients_of_one_network_have_one_share():
    scopes = [{"client": (f"2001:db8::{host:x}", 1)} for host in (1, 2)]
    assert client_of(scopes[0]) == client_of(scopes[1]) == "2001:db8::/64"
    assert client_of({"client": ("203.0.113.5", 1)}) == "203.0.113.5"


def test_a_header_cannot_change_the_client_of_the_run_socket():
    seen: list[str] = []

    async def app(scope: Any, *_: Any) -> None:
        # As the server does with X-Forwarded-For of a trusted proxy on this machine.
        seen.append(client_of({**scope, "client": ("203.0.113.5", 0)}))

    ours, theirs = socket.socketpair()
    with ours, theirs:
        asyncio.run(RunSocketApp(app, ours)({"path": "/healthz"}, None, None))  # type: ignore[arg-type]
    assert seen == [f"run socket {os.getuid()}"]


# --- minimum rate ---------------------------------------------------------------------------


def read(pieces: Sequence[bytes], pause_seconds: float, seconds: float) -> tuple[float, str]:
    """The seconds until the body was refused, and the message."""
    body = Body(SlowClient(pieces, pause_seconds), 10 * MEGABYTE, budget(), "ann")
    began = time.monotonic()
    with pytest.raises(TooSlow) as refused:
        asyncio.run(body.read("", seconds))
    return time.monotonic() - began, str(refused.value)


def test_a_body_that_stops_is_refused_long_before_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(body_module, "PROGRESS_SECONDS", 0.2)
    took, message = read([b"x" * MEGABYTE], 0, 60)
    assert took < 20
    assert "bytes per second" in message


def test_a_body_that_trickles_is_refused(monkeypatch: pytest.MonkeyPatch):
    """Guard: single bytes are not progress."""
    monkeypatch.setattr(body_module, "PROGRESS_SECONDS", 0.2)
    took, _ = read([b"x"] * 100_000, 0.02, 60)
    assert took < 20


def test_a_body_that_grows_fast_enough_has_its_whole_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(body_module, "PROGRESS_SECONDS", 1.0)
    took, _ = read([b"x" * 30_000] * 1000, 0.1, 2.5)
    assert 2.3 < took < 20
