"""The token of a signal is checked before its body is read, and no body is parsed on the loop."""

import asyncio
import time
from typing import Any

import pytest

from agents_app.models import Tenant
from agents_app.worker.lease import utc_now
from gateway_app.access import rate_limits
from gateway_app.access.rate_limits import RateLimit
from gateway_app.asgi import RUN_SOCKET_USER
from gateway_app.signals.receive import Signals
from tests.agents_app.calling import Program
from tests.agents_app.fleet import Fleet

pytestmark = pytest.mark.django_db(transaction=True)
# Objects cost most: each calls Python code, which checks for duplicate keys.
COSTLY = b'{"text": [' + b"{}," * 1_300_000 + b"{}]}"


@pytest.fixture(autouse=True)
def _no_token_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "_valid", set())


@pytest.fixture
def one(transactional_db: None) -> Program:
    fleet, now = Fleet(Tenant.objects.create(name="default")), utc_now()
    return Program(fleet, fleet.start(fleet.enqueue(fleet.agent("a"), now), now))


class CountingClient:
    """Counts the bytes that the application reads."""

    def __init__(self) -> None:
        self.app = Signals(utc_now, 5)
        self.read_bytes = 0
        self.status = 0

    async def send(
        self, name: str, token: str, body: bytes, address: str = "203.0.113.5", **more: Any
    ) -> int:
        pieces = [body[start : start + 65_536] for start in range(0, len(body), 65_536)]

        async def receive() -> dict[str, Any]:
            if not pieces or self.status:
                return {"type": "http.disconnect"}
            self.read_bytes += len(pieces[0])
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

        async def send(message: Any) -> None:
            self.status = self.status or message["status"]

        self.status = 0
        scope = {"type": "http", "method": "POST", "path": f"/v1/signals/{name}"}
        headers = [(b"authorization", f"Bearer {token}".encode())]
        scope |= {"headers": headers, "client": (address, 40_000), **more}
        await self.app(scope, receive, send)
        return self.status

    def post(self, name: str, token: str, body: bytes, **more: Any) -> int:
        return asyncio.run(self.send(name, token, body, **more))


async def longest_pause(work: Any) -> tuple[float, Any]:
    """The longest time for which the event loop did nothing else while `work` was done."""
    done = asyncio.ensure_future(work)
    longest, last = 0.0, time.monotonic()
    while not done.done():
        await asyncio.sleep(0.005)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    return longest, await done


@pytest.mark.parametrize("token", ["", "nonsense", "drover_run_1_wrong"])
def test_nothing_is_read_of_the_body_of_an_unknown_client(token: str, one: Program):
    client = CountingClient()
    assert client.post("return", token, COSTLY) == 401
    assert client.read_bytes == 0


def test_the_body_of_an_ended_run_is_not_read(one: Program):
    client = CountingClient()
    one.ends(now=utc_now())
    assert client.post("return", one.job.token, b'{"text": "x"}') == 401
    assert client.read_bytes == 0


def test_the_token_of_a_run_that_has_ended_since_is_looked_up_again(one: Program):
    client = CountingClient()
    assert client.post("status", one.job.token, b'{"text": "x"}') == 200
    one.ends(now=utc_now())
    assert client.post("status", one.job.token, b'{"text": "x"}') == 401
    client.read_bytes = 0
    assert client.post("status", one.job.token, b'{"text": "x"}') == 401
    assert client.read_bytes == 0


def test_the_event_loop_goes_on_while_a_costly_body_is_parsed(one: Program):
    """Guard: parsing on the event loop stopped every other request for seconds."""
    client = CountingClient()

    async def measure() -> tuple[float, float]:
        began = time.monotonic()
        longest, status = await longest_pause(client.send("return", one.job.token, COSTLY))
        assert status == 400
        return longest, time.monotonic() - began

    longest, whole = asyncio.run(measure())
    assert longest < whole / 3, f"{longest:.2f} of {whole:.2f} s"


@pytest.mark.parametrize(("name", "status"), [("return", 200), ("status", 413), ("nope", 413)])
def test_each_signal_has_its_own_limit(name: str, status: int, one: Program):
    body = b'{"text": "' + b"x" * 900_000 + b'"}'
    assert CountingClient().post(name, one.job.token, body) == status


def test_wrong_tokens_are_limited_by_address_and_valid_ones_are_not(one: Program):
    client = CountingClient()
    client.app.wrong_tokens = RateLimit(rate=0.01, burst=3)
    assert client.post("status", one.job.token, b'{"text": "x"}') == 200
    statuses = [client.post("status", f"drover_run_{n}_x", b"{}") for n in range(5)]
    assert statuses == [401, 401, 401, 429, 429]
    assert client.post("status", one.job.token, b'{"text": "x"}') == 200
    assert client.post("status", "drover_run_9_x", b"{}", address="198.51.100.7") == 401


def test_wrong_tokens_of_one_run_limit_no_other_run_on_the_same_socket(one: Program):
    client = CountingClient()
    client.app.wrong_tokens = RateLimit(rate=0.01, burst=3)
    socket = {RUN_SOCKET_USER: 1000}
    statuses = [client.post("status", "drover_run_77_x", b"{}", **socket) for _ in range(5)]
    assert statuses == [401, 401, 401, 429, 429]
    assert client.post("status", one.job.token, b'{"text": "x"}', **socket) == 200


def test_a_client_of_the_run_socket_is_limited_whatever_run_it_claims_to_be(one: Program):
    """Guard: with a limit by claimed run alone, each new number had a limit of its own."""
    client = CountingClient()
    client.app.wrong_tokens_of_user = RateLimit(rate=0.01, burst=3)
    socket = {RUN_SOCKET_USER: 1000}
    assert client.post("status", one.job.token, b'{"text": "x"}', **socket) == 200
    statuses = [client.post("status", f"drover_run_{n}_x", b"{}", **socket) for n in range(5)]
    assert statuses == [401, 401, 401, 429, 429]
    assert client.post("status", one.job.token, b'{"text": "x"}', **socket) == 200
    assert client.post("status", "drover_run_9_x", b"{}", **{RUN_SOCKET_USER: 1001}) == 401
