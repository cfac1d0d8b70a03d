"""Signals over HTTP: JSON or a form, authentication, limits, and waiting without a thread."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection

from agents_app.models import AgentCall, LockWait, Run, Tenant
from agents_app.signals import messages
from agents_app.worker.lease import utc_now
from gateway_app.access.rate_limits import RateLimit
from gateway_app.signals.receive import Signals
from tests.agents_app.calling import Program, called
from tests.agents_app.fleet import Fleet
from tests.gateway_app.api.calling import Api, token_of
from tests.parts.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)
FORM = "application/x-www-form-urlencoded"


class Client:
    """Calls the application like a server, in its own event loop."""

    def __init__(self) -> None:
        self.app = Signals(utc_now, 5)

    def post(self, name: str, token: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        return asyncio.run(self.send(name, token, body, **more))

    async def send(
        self,
        name: str,
        token: str,
        body: Any = None,
        *,
        kind: str = "application/json",
        method: str = "POST",
        hang_up_after: float = 3600,
        cookie: str = "",
    ) -> tuple[int, Any]:
        raw = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        pieces, sent = [raw], []

        async def receive() -> dict[str, Any]:
            if pieces:
                return {"type": "http.request", "body": pieces.pop(), "more_body": False}
            await asyncio.sleep(hang_up_after)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"content-type", kind.encode()), (b"cookie", cookie.encode())]
        if token:
            headers.append((b"authorization", f"Bearer {token}".encode("latin-1")))
        path = f"/v1/signals/{name}"
        scope = {"type": "http", "method": method, "path": path, "headers": headers}
        await self.app(scope, receive, send)
        if not sent:
            return 0, None
        return sent[0]["status"], json.loads(b"".join(m.get("body", b"") for m in sent[1:]))


@pytest.fixture
def fleet(transactional_db: None) -> Fleet:
    return Fleet(Tenant.objects.create(name="default"))


@pytest.fixture
def client() -> Client:
    return Client()


def speaking(fleet: Fleet, name: str = "a", **columns: Any) -> Program:
    agent, now = fleet.agent(name, **columns), utc_now()
    return Program(fleet, fleet.start(fleet.enqueue(agent, now), now))


@pytest.fixture
def one(fleet: Fleet) -> Program:
    return speaking(fleet)


# --- what comes in --------------------------------------------------------------------------


def test_json_and_a_form_have_the_same_effect(client: Client, one: Program):
    text = "quotes \" and ' , newlines\n, tabs\t, % + & = and ünïcödé 🐑"
    assert client.post("status", one.job.token, {"text": text}) == (200, {"ok": True})
    assert one.run.status_text == text
    form = urlencode({"text": text[::-1]}).encode()
    assert client.post("status", one.job.token, form, kind=f"{FORM}; charset=utf-8")[0] == 200
    assert one.run.status_text == text[::-1]


def test_a_field_that_a_form_repeats_is_a_list(client: Client, fleet: Fleet, one: Program):
    b = fleet.agent("b", scale=2)
    made = [one.calls(b, utc_now()) for _ in range(2)]
    for call in made:
        called(fleet, call, utc_now()).ends(now=utc_now())
    form = urlencode([("ids", call) for call in made]).encode()
    status, content = client.post("wait", one.job.token, form, kind=FORM)
    assert (status, content["done"], len(content["calls"])) == (200, True, 2)


@pytest.mark.parametrize(
    "body", [b"[]", b"x", b'"x"', b"{", b"\xff", b'{"a": 1, "a": 2}', b"[" * 10_000]
)
def test_a_body_that_is_not_an_object_is_a_bad_request(client: Client, one: Program, body: bytes):
    status, content = client.post("status", one.job.token, body)
    assert (status, content["error"]["code"]) == (400, "bad_body")


def test_a_body_that_is_too_large_is_refused_while_it_is_read(client: Client, one: Program):
    status, content = client.post("return", one.job.token, {"text": "x" * 5_000_000})
    assert (status, content["error"]["code"]) == (413, "too_large")
    status, content = client.post("return", one.job.token, {"text": "x" * 1_000_001})
    assert (status, content["error"]["code"]) == (413, "too_large")


def test_other_methods_and_unknown_signals_are_refused(client: Client, one: Program):
    status, content = client.post("status", one.job.token, method="GET")
    assert (status, content["error"]["code"]) == (405, "method_not_allowed")
    status, content = client.post("dance", one.job.token)
    assert (status, content["error"]["code"]) == (404, "not_found")


# --- authentication -------------------------------------------------------------------------


def test_run_tokens_and_tenant_tokens_are_not_interchangeable(
    client: Client, fleet: Fleet, one: Program
):
    admin = token_of(fleet.tenant, "admin")
    for token in ("", "x", admin):
        status, content = client.post("status", token, {"text": "x"}, cookie="drover_session=1")
        assert (status, content["error"]["code"]) == (401, "unauthorized")
    assert Api(one.job.token).get("/agents").status == 401
    assert one.run.signaled_at is None


@pytest.mark.fault("F50")
def test_an_ended_run_s_token_is_401_and_a_superseded_attempt_s_409(client: Client, fleet: Fleet):
    one = speaking(fleet, retries=1)
    one.ends("failed", utc_now())
    assert client.post("status", one.job.token, {"text": "x"})[0] == 401
    Run.objects.create(
        **{
            column: getattr(one.run, column)
            for column in ("tenant", "agent", "work_item", "trigger", "created_at")
        },
        slot=0,
        attempt=2,
    )
    status, content = client.post("status", one.job.token, {"text": "x"})
    assert (status, content["error"]["code"]) == (409, "superseded")


def test_a_program_that_sends_too_many_signals_is_limited(client: Client, one: Program):
    client.app.limit = RateLimit(rate=1, burst=3)
    statuses = [client.post("check", one.job.token, {"id": 1})[0] for _ in range(6)]
    assert statuses[:3] == [404] * 3
    assert 429 in statuses[3:]


# --- waiting --------------------------------------------------------------------------------


def later(seconds: float, act: Callable[[], Any]) -> threading.Thread:
    def do() -> None:
        time.sleep(seconds)
        act()
        connection.close()

    thread = threading.Thread(target=do)
    thread.start()
    return thread


def test_a_wait_ends_as_soon_as_the_callee_does(client: Client, fleet: Fleet, one: Program):
    call = one.calls(fleet.agent("b"), utc_now())
    callee = called(fleet, call, utc_now())
    ending = later(0.5, lambda: callee.ends(now=utc_now()))
    began = time.monotonic()
    status, content = client.post("wait", one.job.token, {"ids": [call]})
    ending.join()
    assert (status, content["done"], content["calls"][0]["status"]) == (200, True, "completed")
    assert 0.3 < time.monotonic() - began < 15
    assert one.run.waiting_since is None


def test_a_wait_that_times_out_reports_that_the_call_is_not_done(
    client: Client, fleet: Fleet, one: Program
):
    call = one.calls(fleet.agent("b"), utc_now())
    status, content = client.post("wait", one.job.token, {"ids": [call], "timeout": 0.3})
    assert (status, content["ok"], content["done"]) == (200, True, False)
    assert one.run.waiting_since is None


def test_a_client_that_closes_the_connection_no_longer_waits(
    client: Client, fleet: Fleet, one: Program
):
    call = one.calls(fleet.agent("b"), utc_now())
    assert client.post("wait", one.job.token, {"ids": [call]}, hang_up_after=0.3) == (0, None)
    assert one.run.waiting_since is None


def test_a_run_that_ends_while_waiting_gets_401(client: Client, fleet: Fleet, one: Program):
    call = one.calls(fleet.agent("b"), utc_now())
    ending = later(0.3, lambda: one.ends("stopped", utc_now()))
    assert client.post("wait", one.job.token, {"ids": [call]})[0] == 401
    ending.join()
    assert AgentCall.objects.get().error == "the caller had already finished"


def test_a_released_lock_goes_to_the_waiting_run(client: Client, fleet: Fleet, one: Program):
    two = speaking(fleet, "b")
    two.says("lock", utc_now(), uri="x:y")
    refused = client.post("lock", one.job.token, {"uri": "x:y"})
    assert (refused[0], refused[1]["ok"], refused[1]["holder"]) == (
        *(409, False),
        f"b-{two.job.run_id}",
    )
    status, content = client.post(
        "lock", one.job.token, {"uri": "x:y", "wait": True, "timeout": 0.3}
    )
    assert (status, content["ok"], content["error"]["code"]) == (409, False, "locked")
    assert not LockWait.objects.get().in_line
    ending = later(0.4, lambda: two.says("unlock", utc_now(), uri="x:y"))
    status, content = client.post("lock", one.job.token, {"uri": "x:y", "wait": "true"})
    ending.join()
    assert (status, content["ok"]) == (200, True)


def test_an_inbox_waits_for_its_first_message(client: Client, one: Program):
    assert client.post("inbox", one.job.token) == (200, {"ok": True, "messages": []})
    agent = one.run.agent
    ending = later(0.4, lambda: messages.send(agent, "hello", "ann", utc_now()))
    status, content = client.post("inbox", one.job.token, {"timeout": 15})
    ending.join()
    assert (status, [each["text"] for each in content["messages"]]) == (200, ["hello"])


def test_many_waiting_requests_hold_no_threads(client: Client, fleet: Fleet, one: Program):
    call = one.calls(fleet.agent("b"), utc_now())
    most = 0

    async def all_of_them() -> None:
        nonlocal most
        waiting = [
            asyncio.create_task(client.send("wait", one.job.token, {"ids": [call], "timeout": 3}))
            for _ in range(60)
        ]
        await asyncio.sleep(1)
        most = threading.active_count()
        status, _ = await client.send("status", one.job.token, {"text": "still accepted"})
        assert status == 200
        await asyncio.gather(*waiting)

    before = threading.active_count()
    asyncio.run(all_of_them())
    assert most - before <= 10
    wait_for(lambda: one.run.waiting_since is None)
