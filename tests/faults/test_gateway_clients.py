"""Slow clients, oversized bodies and invalid requests on real connections."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest

from tests.faults.conftest import NewFleet
from tests.faults.hooks import BODY, SECRET, Sender, hooked, read_answer, request, stored
from tests.faults.real_fleet import RealFleet
from tests.parts.processes import ProcessorShare

SLOW_CLIENTS = 200
# A slow client is disconnected within this time; the default of DROVER_BODY_SECONDS is 10.
SLOW_SECONDS = 15.0
# 99 % of the requests of other clients are answered within this time.
HEALTHY_SECONDS = 0.1
HEALTHY_REQUESTS, MOST_BATCHES = 100, 5
# Batches begin only in this time, in which the slow clients are connected.
BATCHES_BEGIN_SECONDS = 3.0
GITHUB_LIMIT = 26 * 2**20
HEAD = b"POST /webhooks/github HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def fleet(new_fleet: NewFleet) -> RealFleet:
    fleet = new_fleet(HOOK_SECRET=SECRET)
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

    async def send_all() -> tuple[list[float], list[float], float]:
        began = time.monotonic()
        heads = [trickle(port, HEAD + b"X-Slow: ") for _ in range(SLOW_CLIENTS // 2)]
        started = HEAD + b"Content-Length: 100000\r\n\r\n"
        bodies = [trickle(port, started) for _ in range(SLOW_CLIENTS // 2)]
        slow = asyncio.gather(*heads, *bodies)
        await asyncio.sleep(0.3)
        found = await asyncio.to_thread(healthy_p99s, fleet)
        served = time.monotonic() - began
        return found, await asyncio.wait_for(slow, SLOW_SECONDS + 5), served

    found, slow_seconds, served = asyncio.run(send_all())
    assert min(found) < HEALTHY_SECONDS, found
    assert served < min(slow_seconds), "the slow clients were not connected all the time"
    assert max(slow_seconds) <= SLOW_SECONDS


def healthy_p99s(fleet: RealFleet) -> list[float]:
    """99th percentiles of batches of deliveries, until one of them is short enough.

    A slow client would delay all of them, another program of this machine only some; the time in
    which the gateway was ready to run and had no processor does not count."""
    port, gateway = fleet.stack.conf.port, fleet.stack.processes["gateway"].pid
    found: list[float] = []
    until = time.monotonic() + BATCHES_BEGIN_SECONDS
    while not found or (
        len(found) < MOST_BATCHES and min(found) >= HEALTHY_SECONDS and time.monotonic() < until
    ):
        ids = [f"healthy-{len(found)}-{number}" for number in range(HEALTHY_REQUESTS)]
        processor = ProcessorShare(gateway)
        sender = Sender(port, ids, connections=4, stubborn=False).start().wait(20)
        assert sender.statuses == {200: HEALTHY_REQUESTS}
        p99 = sorted(sender.seconds)[HEALTHY_REQUESTS * 99 // 100 - 1]
        found.append(p99 * processor.share())
    return found


# --- unfinished bodies ----------------------------------------------------------------------


def post(path: str, length: int, *lines: str) -> bytes:
    head = (f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {length}", *lines)
    return "\r\n".join(head).encode() + b"\r\n\r\n"


FORM = "Content-Type: application/x-www-form-urlencoded"
UNFINISHED = [
    *[(post("/webhooks/github", GITHUB_LIMIT), 25 * 2**20)] * 6,
    *[(post("/admin/login/", 2_400_000, FORM), 2_300_000)] * 20,
]
# Answered after the body was read, each with the status that it has on an idle gateway.
OTHERS = {
    "a signed webhook": (request("among-unfinished-ones"), 200),
    "the login": (post("/admin/login/", 3, FORM) + b"a=b", 403),
    "the API": (post("/v1/agents/triage/run", 2, "Cookie: a=b") + b"{}", 401),
    "a signal": (post("/v1/signals/status", 2) + b"{}", 401),
}


@pytest.mark.fault("F62")
def test_a_few_unfinished_bodies_turn_no_other_request_into_503(fleet: RealFleet) -> None:
    """Guard: shares of the memory for bodies. Five bodies of 26 MB used up all of it, so that
    signed webhooks of any sender were refused."""
    port = fleet.stack.conf.port

    async def send_all() -> dict[str, int]:
        writers = []
        for head, size in UNFINISHED:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head + b"x" * size)
            writers.append(writer)
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(2):
                await asyncio.gather(*(each.drain() for each in writers), return_exceptions=True)
        found = {name: await answer_to(sent) for name, (sent, _) in OTHERS.items()}
        for writer in writers:
            writer.transport.abort()
        return found

    async def answer_to(sent: bytes) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        status = int((await reader.readline()).split()[1])
        writer.close()
        return status

    assert asyncio.run(asyncio.wait_for(send_all(), 30)) == {
        name: status for name, (_, status) in OTHERS.items()
    }


@pytest.mark.parametrize("path", ["/v1/signals/status", "/v1/agents/triage/run"])
@pytest.mark.parametrize("token", ["", "Authorization: Bearer drover_run_1_wrong"])
def test_the_body_of_a_client_without_a_valid_token_is_not_waited_for(
    fleet: RealFleet, path: str, token: str
) -> None:
    began = time.monotonic()
    status, _, body, _ = ask(fleet, post(path, 200_000, *filter(None, [token])))
    assert (status, code_of(body)) == (401, "unauthorized")
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("path", ["/v1/signals/status", "/v1/agents/triage/run"])
def test_a_costly_body_without_a_valid_token_delays_no_other_client(
    fleet: RealFleet, path: str
) -> None:
    """Guard: 4 MB of JSON were parsed on the event loop, for 3.8 s."""
    body = b'{"text": [' + b"{}," * 330_000 + b"{}]}"
    lines = ("Content-Type: application/json", "Authorization: Bearer drover_run_1_wrong")
    health = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"

    async def slowest_check() -> float:
        port, slowest = fleet.stack.conf.port, 0.0
        _, costly = await asyncio.open_connection("127.0.0.1", port)
        costly.write(post(path, len(body), *lines) + body)
        for _ in range(20):
            began = time.monotonic()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(health)
            assert b" 200 " in await reader.readline()
            writer.close()
            slowest = max(slowest, time.monotonic() - began)
        costly.close()
        return slowest

    # Parsing a quarter of 4 MB would take a second.
    assert asyncio.run(asyncio.wait_for(slowest_check(), 30)) < 0.5


# --- oversized bodies -----------------------------------------------------------------------

LOGIN_LIMIT = 2_500_000
OVERSIZED = [("/webhooks/github", GITHUB_LIMIT), ("/admin/login/", LOGIN_LIMIT)]
# The gateway writes a few log lines meanwhile.
DISK_BYTES = 100_000


@contextmanager
def disk_unchanged(fleet: RealFleet) -> Iterator[None]:
    """Assert that the gateway stores no delivery and writes no file, not even a deleted one."""
    gateway = psutil.Process(fleet.stack.processes["gateway"].pid)
    rows, written = stored(fleet), gateway.io_counters().write_bytes
    yield
    assert stored(fleet) == rows
    assert gateway.io_counters().write_bytes - written < DISK_BYTES


@pytest.mark.parametrize(("path", "limit"), OVERSIZED)
@pytest.mark.fault("F63")
def test_an_oversized_body_with_content_length_is_refused_before_it_is_read(
    fleet: RealFleet, path: str, limit: int
) -> None:
    with disk_unchanged(fleet):
        answer = ask(fleet, post(path, limit + 1), b"x" * 2**20, hangs_up=True)
    status, _, body, closed = answer
    assert (status, code_of(body), closed) == (413, "too_large", True)


@pytest.mark.parametrize(("path", "limit"), OVERSIZED)
@pytest.mark.fault("F63")
def test_an_oversized_body_without_content_length_is_refused_while_it_is_read(
    fleet: RealFleet, path: str, limit: int
) -> None:
    """Guard: bytes are counted while they arrive. Without that Django writes the whole body to
    disk."""
    chunk = b"100000\r\n" + b"x" * 2**20 + b"\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    with disk_unchanged(fleet):
        answer = ask(fleet, head.encode(), *[chunk] * (limit // 2**20 + 2), hangs_up=True)
    status, _, body, closed = answer
    assert (status, code_of(body), closed) == (413, "too_large", True)


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
            401,
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


@pytest.mark.fault("F65")
def test_a_replayed_delivery_is_a_duplicate_and_creates_no_work(fleet: RealFleet) -> None:
    first = json.loads(ask(fleet, request("once"))[2])
    again = json.loads(ask(fleet, request("once", BODY))[2])
    assert again == {**first, "duplicate": True}
    assert stored(fleet)["once"] == 1
