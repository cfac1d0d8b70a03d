"""/v1/notifications/stream on a real server: which events, for which client, in which order."""

import asyncio
import json
import time
from typing import Any

import pytest

from tests.gateway_app.streams.client import NOTIFICATIONS, Event, Stream
from tests.gateway_app.streams.conftest import Gateway
from tests.parts.waiting import wait_for

SLOW = {
    "error": "notification stream backlog exceeded; reconnect",
    "error_code": "slow_consumer",
}
CLIENTS = 500
ENTRIES = "INSERT INTO drover_run_event (tenant_id, agent_id, run_id, name, at, detail) VALUES"
TENANT_DISABLED = {"error": "the tenant is disabled", "error_code": "tenant_disabled"}
UNAUTHORIZED = {"error": "missing or invalid bearer token", "error_code": "unauthorized"}


def kinds(events: list[Event]) -> list[str]:
    return [event.data["kind"] for event in events]


# --- opening --------------------------------------------------------------------------------


def test_the_first_event_says_that_the_stream_is_open(gateway: Gateway):
    with Stream(gateway.port, gateway.token) as stream:
        assert stream.status == 200
        assert stream.response.headers["Content-Type"] == "text/event-stream"
        assert stream.response.headers["Cache-Control"] == "no-store"
        lines = stream.lines()
        assert [next(lines), next(lines)] == ["event: open", 'data: {"ok":true}']


def test_a_stream_without_events_has_heartbeats(gateway: Gateway):
    with gateway.listen() as stream:
        lines = stream.lines()
        assert [next(lines) for _ in range(4)] == [": heartbeat", "", ": heartbeat", ""]


@pytest.mark.parametrize(
    ("path", "token", "after", "status", "code"),
    [
        (NOTIFICATIONS, "", None, 401, "unauthorized"),
        (NOTIFICATIONS, "nonsense", None, 401, "unauthorized"),
        (f"{NOTIFICATIONS}?agent=missing", None, None, 404, "not_found"),
        (f"{NOTIFICATIONS}?run_id=77", None, None, 404, "not_found"),
        (f"{NOTIFICATIONS}?kinds=run.exploded", None, None, 400, "invalid"),
        (f"{NOTIFICATIONS}?colour=red", None, None, 400, "invalid"),
        (f"{NOTIFICATIONS}?last_event_id=-1", None, None, 400, "invalid"),
        (NOTIFICATIONS, None, "yesterday", 400, "invalid"),
        ("/v1/runs/77/logs/stream", None, None, 404, "not_found"),
        ("/v1/nothing/stream", None, None, 404, "not_found"),
    ],
)
def test_a_refused_stream_is_answered_like_every_other_error(
    gateway: Gateway, path: str, token: str | None, after: Any, status: int, code: str
):
    token = gateway.token if token is None else token
    with Stream(gateway.port, token, path, after=after) as stream:
        assert (stream.status, stream.problem()["code"]) == (status, code)


# --- events ---------------------------------------------------------------------------------


def test_every_ending_but_success_is_a_failure(gateway: Gateway):
    endings = ["failed", "timed_out", "stopped", "lost", "dead"]
    with gateway.listen() as stream:
        for name in ["admitted", "started", "succeeded", *endings]:
            gateway.tell(f"run.{name}", 7)
        events = stream.take(7)
    assert {event.name for event in events} == {"notification"}
    assert kinds(events) == ["run.started", "run.completed", *["run.failed"] * 5]
    statuses = [event.data["status"] for event in events]
    assert statuses == ["running", "succeeded", *endings]


def test_filters_leave_out_other_entries(gateway: Gateway):
    filtered = f"{NOTIFICATIONS}?kinds=run.completed,%20run.failed"
    with (
        gateway.listen(filtered) as stream,
        gateway.listen(f"{NOTIFICATIONS}?events=all") as all_of,
    ):
        for name in ("run.started", "agent.paused", "run.succeeded"):
            gateway.tell(name, 5, detail="ann: lunch")
        assert kinds(stream.take(1)) == ["run.completed"]
        events = all_of.take(3)
    assert kinds(events) == ["run.started", "agent.paused", "run.succeeded"]
    assert events[1].data["detail"] == "ann: lunch"
    assert events[1].data["status"] is None


@pytest.mark.fault("F72")
def test_a_client_gets_no_entries_of_another_tenant(gateway: Gateway):
    with gateway.listen(f"{NOTIFICATIONS}?events=all") as stream:
        before = gateway.tell("run.started", 1, tenant="acme")
        mine = gateway.tell("run.started", 2)
        (event,) = stream.take(1)
        assert (event.id, event.data["run_id"]) == (mine, 2)
    # Also not from the history in the table.
    with gateway.listen(after=before - 1) as stream:
        assert [event.id for event in stream.take(1)] == [mine]


# --- resuming -------------------------------------------------------------------------------


@pytest.mark.fault("F73")
def test_a_client_that_resumes_gets_the_missed_entries_and_none_twice(gateway: Gateway):
    with gateway.listen() as stream:
        first = gateway.tell("run.started", 1)
        assert stream.next().id == first
    missed = [gateway.tell("run.started", number) for number in range(5)]
    with gateway.listen(after=first) as stream:
        live = gateway.tell("run.succeeded", 1)
        assert [event.id for event in stream.take(6)] == [*missed, live]
    by_query = f"{NOTIFICATIONS}?last_event_id={missed[-1]}"
    with Stream(gateway.port, gateway.token, by_query) as stream:
        assert [event.id for event in stream.take(2)] == [missed[-1], live]


def test_a_client_can_resume_after_the_opening_event(gateway: Gateway):
    with gateway.listen() as stream:
        opened_at = stream.last_id
    missed = gateway.tell("run.started", 1)
    with gateway.listen(after=opened_at) as stream:
        assert stream.next().id == missed


def test_an_event_id_of_another_database_starts_the_stream_now(gateway: Gateway):
    newest = gateway.tell("run.started", 1)
    with Stream(gateway.port, gateway.token, after=newest + 1_000_000) as stream:
        assert stream.next() == Event("open", {"ok": True}, newest)
        mine = gateway.tell("run.started", 2)
        assert stream.next().id == mine


# --- ending ---------------------------------------------------------------------------------


@pytest.mark.fault("F73")
def test_a_client_that_reads_too_slowly_is_disconnected_and_no_other_client_is(gateway: Gateway):
    all_of_it = f"{NOTIFICATIONS}?events=all"
    with gateway.listen(all_of_it) as slow, gateway.listen(all_of_it) as quick:
        count, one = 8000, gateway.columns("agent.noted", detail="x" * 450)
        for _ in range(0, count, 500):
            values = ", ".join(["(?, ?, ?, ?, ?, ?)"] * 500)
            gateway.stack.rows(f"{ENTRIES} {values}", *one * 500)
            # Never far behind, however slow this machine is.
            assert len(quick.take(500)) == 500
        events = list(slow.events())
        assert events[-1] == Event("error", SLOW)
        assert len(events) < count
        # No event is lost: the client resumes after its last event.
        with gateway.listen(all_of_it, after=slow.last_id) as resumed:
            assert len(resumed.take(count - len(events) + 1)) == count - len(events) + 1


def test_the_stream_of_a_revoked_token_ends(gateway: Gateway):
    made = gateway.request("POST", "/tokens", {"name": "soon gone", "scope": "read"})
    spent = made["token"]
    with Stream(gateway.port, spent) as stream, gateway.listen() as other:
        assert stream.next().name == "open"
        gateway.request("DELETE", f"/tokens/{made['id']}")
        gateway.tell("run.started", 9)
        assert list(stream.events()) == [Event("error", UNAUTHORIZED)]
        assert other.next().data["run_id"] == 9
    assert Stream(gateway.port, spent).status == 401


def test_the_streams_of_a_disabled_tenant_end_with_the_reason(gateway: Gateway):
    token = gateway.theirs
    with Stream(gateway.port, token) as stream:
        assert stream.next().name == "open"
        # Without a journal entry: rights are also checked every few seconds.
        sql = "UPDATE drover_tenant SET disabled_at = created_at WHERE name = 'acme'"
        gateway.stack.rows(sql)
        assert list(stream.events())[-1] == Event("error", TENANT_DISABLED)
    gateway.stack.rows("UPDATE drover_tenant SET disabled_at = NULL")


def test_the_stream_of_a_session_ends_with_the_session(gateway: Gateway):
    with Stream(gateway.port, cookie=gateway.cookie) as stream:
        assert (stream.status, stream.next().name) == (200, "open")
        mine = gateway.tell("run.started", 3)
        assert stream.next().id == mine
        gateway.stack.rows("DELETE FROM django_session")
        assert list(stream.events()) == [Event("error", UNAUTHORIZED)]


# --- cost -----------------------------------------------------------------------------------


@pytest.mark.fault("F73")
def test_five_hundred_clients_get_an_entry_and_other_requests_do_not_wait(gateway: Gateway):
    """One process serves all streams and all webhooks."""
    request = (
        f"GET {NOTIFICATIONS} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {gateway.token}\r\n\r\n"
    )

    async def open_stream() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(request.encode())
        await reader.readuntil(b"event: open")
        return reader, writer

    async def listen_and_ask() -> float:
        streams = [await open_stream() for _ in range(CLIENTS)]
        mine = await asyncio.to_thread(gateway.tell, "run.started", 1)
        told = f"id: {mine}\n".encode()
        waiting = [reader.readuntil(told) for reader, _ in streams]
        await asyncio.wait_for(asyncio.gather(*waiting), 30)
        began = time.monotonic()
        await asyncio.to_thread(gateway.request, "GET", "/agents")
        took = time.monotonic() - began
        for _, writer in streams:
            writer.close()
        return took

    assert asyncio.run(listen_and_ask()) < 1


def test_open_streams_hold_no_threads_and_no_connections_to_the_database(gateway: Gateway):
    streams = [gateway.listen() for _ in range(60)]
    status = f"/proc/{gateway.stack.processes['gateway'].pid}/status"

    def threads() -> int:
        with open(status) as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("Threads"))

    wait_for(lambda: threads() < 30, 10, f"{threads()} threads")
    if not gateway.stack.database_url.startswith("sqlite"):
        sql = "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database()"
        assert gateway.stack.rows(sql)[0]["n"] <= 9
    number = gateway.tell("run.started", 4)
    assert {stream.next().id for stream in streams} == {number}
    for stream in streams:
        stream.close()


def test_the_data_of_an_event_is_one_line_of_json_whatever_the_text(gateway: Gateway):
    detail = 'a\r\nevent: b\n\ndata: "c"\N{LINE SEPARATOR}'
    with gateway.listen(f"{NOTIFICATIONS}?events=all") as stream:
        gateway.tell("agent.noted", detail=detail)
        event = stream.next()
    assert event.data["detail"] == detail
    assert json.loads(json.dumps(event.data))["kind"] == "agent.noted"
