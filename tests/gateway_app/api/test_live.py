"""The API on a real server: concurrent clients, connections, stop."""

import http.client
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.gateway_app.api.live import SKILL, LiveServer, serve
from tests.parts.fixtures import NewStack
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for


@pytest.fixture(scope="module")
def server(new_shared_stack: NewStack) -> LiveServer:
    """One gateway for all tests; a test counts only rows of its own."""
    return serve(new_shared_stack)


# --- races between clients ------------------------------------------------------------------


def at_once(count: int, call: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(call, range(count)))


def test_the_same_idempotency_key_from_many_clients_has_one_effect(server: LiveServer):
    body = {"schedule": "every day at 09:00", "message": "x"}
    made = at_once(8, lambda _: server.request("POST", "/schedules", body, Idempotency_Key="k"))
    assert sorted(status for status, _ in made) == [200] * 7 + [201]
    assert len({shown["id"] for _, shown in made}) == 1
    prompt = {"prompt": "once"}
    queued = at_once(
        8, lambda _: server.request("POST", "/agents/hello/run", prompt, Idempotency_Key="k")
    )
    assert {status for status, _ in queued} == {202}
    assert len({shown["work_item_id"] for _, shown in queued}) == 1
    assert sum(not shown["repeated"] for _, shown in queued) == 1
    sql = "SELECT count(*) AS n FROM drover_work_item WHERE prompt = ?"
    assert server.stack.rows(sql, "once") == [{"n": 1}]


def test_of_many_requests_for_the_same_tenant_one_creates_it(server: LiveServer):
    made = at_once(6, lambda _: server.request("POST", "/tenants", {"name": "acme"}))
    assert sorted(status for status, _ in made) == [201, *[409] * 5]
    assert len(server.stack.rows("SELECT 1 FROM drover_tenant WHERE name = ?", "acme")) == 1


# --- bodies ---------------------------------------------------------------------------------


def test_a_body_without_a_content_length_is_limited(server: LiveServer):
    before = server.request("GET", "/queue")[1]["items"]
    connection = http.client.HTTPConnection("127.0.0.1", server.stack.conf.port, timeout=20)
    pieces = iter([b'{"prompt": "', *[b"x" * 100_000] * 11, b'"}'])
    headers = {"Authorization": f"Bearer {server.token}"}
    connection.request("POST", "/v1/agents/hello/run", pieces, headers, encode_chunked=True)
    response = connection.getresponse()
    assert (response.status, json.load(response)["error"]["code"]) == (413, "too_large")
    connection.close()
    assert server.request("GET", "/queue")[1]["items"] == before


# --- connections ----------------------------------------------------------------------------


def open_connections(stack: PrivateStack) -> int:
    if not stack.database_url.startswith("sqlite"):
        with psycopg.connect(stack.database_url) as connection:
            sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            row = connection.execute(sql).fetchone()
            assert row is not None
            return int(row[0]) - 1
    handles = Path(f"/proc/{stack.processes['gateway'].pid}/fd").iterdir()
    return sum(_target(handle).endswith("drover.sqlite3") for handle in handles)


def _target(handle: Path) -> str:
    try:
        return str(handle.readlink())
    except FileNotFoundError:
        return ""


def test_database_connections_are_released_after_each_response(server: LiveServer):
    def some(number: int) -> set[int]:
        paths = ("/agents", "/runs", f"/runs/{number + 999}", "/nothing")
        seen = {server.request("GET", paths[turn % 4])[0] for turn in range(12)}
        return seen | {server.request("POST", "/agents/hello/pause")[0]}

    assert set().union(*at_once(16, some)) == {200, 404}
    # The size of the pool of PostgreSQL. SQLite closes no file while another connection has a lock
    # and uses it for later connections: at most one for each thread, far below 208 responses.
    most = 48 if server.stack.database_url.startswith("sqlite") else 8
    wait_for(
        lambda: open_connections(server.stack) <= most,
        10,
        lambda: f"{open_connections(server.stack)} connections are left open",
    )


# --- the end --------------------------------------------------------------------------------


def test_a_stop_by_the_api_ends_all_processes_when_nothing_runs(new_stack: NewStack):
    stack = new_stack()
    stack.write_agent("hello", SKILL)
    up = stack.up()
    server = LiveServer(stack)
    status, shown = server.request("POST", "/scheduler/stop")
    assert (status, shown["state"]) == (202, "draining")
    up.wait(30)
    assert stack.rows("SELECT state FROM drover_scheduler") == [{"state": "stopped"}]
