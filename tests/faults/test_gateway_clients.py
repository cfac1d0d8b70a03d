"""Slow clients, oversized bodies and invalid requests on real connections."""

import asyncio
import json
import time
from contextlib import suppress

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.hooks import BODY, SECRET, Sender, hooked, read_answer, request, stored
from tests.faults.real_fleet import RealFleet

PATIENCE_SECONDS = 3.0
SLOW_CLIENTS = 200
GITHUB_LIMIT = 26 * 2**20
HEAD = b"POST /webhooks/github HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def fleet(new_fleet: NewFleet) -> RealFleet:
    fleet = new_fleet(HOOK_SECRET=SECRET, DROVER_BODY_SECONDS=f"{PATIENCE_SECONDS:g}")
    hooked(fleet, "triage")
    fleet.ensure("gateway")
    return fleet


def ask(
    fleet: RealFleet, *pieces: bytes, hangs_up: bool = False
) -> tuple[int, dict[str, str], bytes, bool]:
    """The answer, and whether the server closed the connection after it."""

    async def exchange() -> tuple[int, dict[str, str], bytes, bool]:
        reader, writer = await asyncio.open_connection("127.0.0.1", fleet.stack.conf.port)
        for piece in pieces:
            writer.write(piece)
            with suppress(ConnectionError):
                await writer.drain()
        answer = await read_answer(reader)
        closed = False
        with suppress(TimeoutError, ConnectionError):
            closed = await asyncio.wait_for(reader.read(1), 3 if hangs_up else 0.01) == b""
        writer.close()
        return *answer, closed

    return asyncio.run(asyncio.wait_for(exchange(), 30))


def code_of(body: bytes) -> str:
    return str(json.loads(body)["error"]["code"])


# --- slow -----------------------------------------------------------------------------------


async def trickle(port: int, opening: bytes) -> float:
    """Send single bytes slowly; returns the seconds until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = time.monotonic()
    writer.write(opening)
    with suppress(ConnectionError):
        while not reader.at_eof():
            writer.write(b"x")
            await writer.drain()
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(1000), 0.5)
    writer.close()
    return time.monotonic() - began


@pytest.mark.fault("F62")
def test_two_hundred_slow_clients_are_disconnected_and_delay_no_other_client(
    fleet: RealFleet,
) -> None:
    """Guard: a time limit for the head in the protocol, and one for the body. Without the first,
    half of the connections stay open forever; without the second, the other half."""
    port = fleet.stack.conf.port

    async def send_all() -> tuple[list[float], Sender]:
        heads = [trickle(port, HEAD + b"X-Slow: ") for _ in range(SLOW_CLIENTS // 2)]
        started = HEAD + b"Content-Length: 100000\r\n\r\n"
        bodies = [trickle(port, started) for _ in range(SLOW_CLIENTS // 2)]
        slow = asyncio.gather(*heads, *bodies)
        await asyncio.sleep(1)
        ids = [f"healthy-{number}" for number in range(200)]
        sender = Sender(port, ids, connections=4, stubborn=False).start()
        await asyncio.to_thread(sender.wait, 20)
        return await asyncio.wait_for(slow, 15), sender

    put_up_with, sender = asyncio.run(send_all())
    assert sender.statuses == {200: 200}
    # 15 ms on an idle machine; other requests must not wait for the slow clients.
    assert sorted(sender.seconds)[197] < 0.5
    assert max(put_up_with) < PATIENCE_SECONDS + 4


# --- oversized bodies -----------------------------------------------------------------------


@pytest.mark.fault("F63")
def test_an_oversized_body_with_content_length_is_refused_before_it_is_read(
    fleet: RealFleet,
) -> None:
    head = HEAD + f"Content-Length: {GITHUB_LIMIT + 1}\r\n\r\n".encode()
    status, _, body, closed = ask(fleet, head, b"x" * 2**20, hangs_up=True)
    assert (status, code_of(body), closed) == (413, "too_large", True)


@pytest.mark.fault("F63")
def test_an_oversized_body_without_content_length_is_refused_while_it_is_read(
    fleet: RealFleet,
) -> None:
    """Guard: bytes are counted while they arrive. Without that Django writes the whole body to
    disk."""
    chunk = b"100000\r\n" + b"x" * 2**20 + b"\r\n"
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    before = stored(fleet)
    status, _, body, closed = ask(fleet, head, *[chunk] * 28, hangs_up=True)
    assert (status, code_of(body), closed) == (413, "too_large", True)
    assert stored(fleet) == before


def test_the_largest_body_that_github_sends_is_accepted(fleet: RealFleet) -> None:
    body = b'{"x": "' + b"y" * (25 * 2**20) + b'"}'
    assert ask(fleet, request("largest", body))[0] == 200


# --- invalid requests -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "sent", "expected"),
    [
        ("forged", request("forged", secret="not the secret"), 401),
        ("another body", request("other").replace(b"It broke", b"It works"), 401),
        ("no signature", HEAD + b"Content-Length: 2\r\n\r\n{}", 401),
        (
            "a strange one",
            HEAD + b"X-Hub-Signature-256: sha256=\xff\xfe\r\nContent-Length: 0\r\n\r\n",
            401,
        ),
        ("malformed", request("malformed", b'{"a": '), 200),
        ("not UTF-8", request("binary", bytes(range(256))), 200),
        ("deep", request("deep", b"[" * 200_000), 200),
        (
            "unknown",
            b"POST /webhooks/none HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
            404,
        ),
    ],
)
@pytest.mark.fault("F64")
def test_hostile_requests_are_answered_and_affect_no_other_request(
    fleet: RealFleet, what: str, sent: bytes, expected: int
) -> None:
    assert ask(fleet, sent)[0] == expected
    assert (what in stored(fleet)) == (expected == 200 and what in {"malformed", "deep"})
    assert ask(fleet, request(f"after {what}".replace(" ", "-")))[0] == 200


def test_a_replayed_delivery_is_a_duplicate_and_creates_no_work(fleet: RealFleet) -> None:
    first = json.loads(ask(fleet, request("once"))[2])
    again = json.loads(ask(fleet, request("once", BODY))[2])
    assert again == {**first, "duplicate": True}
    assert stored(fleet)["once"] == 1
