"""The API on a real server: its whole document fuzzed, clients that race, connections, a stop."""

import http.client
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.parts.fixtures import NewStack
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

HOOKS = '[webhooks.hooks]\ntype = "generic"\nallowUnsigned = true\n'
SKILL = '---\ndescription: Says hello\ncommand: ["true"]\nscale: 2\n---\nSay hello.\n'
# A token that is being used must not be taken away halfway: these get one of their own.
TAKE_THE_TOKEN_AWAY = ("revoke_token", "rotate_tenant")
# They have no end that could be waited for; tests/gateway/streams has their errors.
ENDLESS = ("stream_notifications", "follow_lines")
# What a phrase, a zone or a cursor means no schema can say, so it is refused for that, too.
NOT_CHECKED = "positive_data_acceptance"


class Server:
    def __init__(self, stack: PrivateStack) -> None:
        self.stack = stack
        self.token = self.new_token("admin")

    def new_token(self, scope: str, tenant: str = "default") -> str:
        made = self.stack.manage("token", "create", "test", "--scope", scope, "--tenant", tenant)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        request = urllib.request.Request(
            f"{self.stack.url}/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}"}
            | {name.replace("_", "-"): value for name, value in headers.items()},
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


@pytest.fixture
def server(new_stack: NewStack) -> Server:
    """Only the gateway; what is asked for waits for a worker that never comes."""
    stack = new_stack(DROVER_API_RATE="100000")
    stack.write_agent("hello", SKILL)
    (stack.project / "config.toml").write_text(HOOKS)
    synced = stack.manage("discover", "--sync")
    assert synced.returncode == 0, synced.stderr
    stack.start("gateway")
    return Server(stack)


# --- the whole document ---------------------------------------------------------------------


def fuzz(server: Server, token: str, directory: Path, *options: str) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run"),
            f"{server.stack.url}/v1/openapi.json",
            *("--header", f"Authorization: Bearer {token}", "--max-examples", "4"),
            *("--exclude-checks", NOT_CHECKED, "--continue-on-failure", "--no-color"),
            *("--request-timeout", "20", *options),
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.timeout(420)
def test_nothing_in_the_document_is_answered_with_a_fault_or_in_another_shape(
    server: Server, tmp_path: Path
):
    for _ in range(4):
        assert server.ask("POST", "/agents/hello/run", {"prompt": "x"})[0] == 202
    body = {"schedule": "every day at 09:00", "message": "x"}
    assert server.ask("POST", "/schedules", body)[0] == 201
    delivered = urllib.request.Request(f"{server.stack.url}/webhooks/generic/hooks", data=b"{}")
    with urllib.request.urlopen(delivered, timeout=20) as response:
        assert json.load(response)["delivery"] == 1
    others = [("--exclude-operation-id", name) for name in TAKE_THE_TOKEN_AWAY + ENDLESS]
    # Signals are for another kind of token: with this one they all say the same.
    others.append(("--exclude-tag", "signals"))
    fuzz(server, server.token, tmp_path, *(text for pair in others for text in pair))
    # It got beyond the door: the token still opens it, and much was done with it.
    assert server.ask("GET", "/agents")[0] == 200
    assert server.ask("POST", "/tenants", {"name": "acme-for-this-test"})[0] == 201
    spent = server.new_token("admin", "acme-for-this-test")
    these = [("--include-operation-id", name) for name in TAKE_THE_TOKEN_AWAY]
    fuzz(server, spent, tmp_path, *(text for pair in these for text in pair))
    names = server.stack.rows("SELECT DISTINCT name FROM drover_run_event")
    done = {row["name"] for row in names}
    assert {
        "schedule.created",
        "schedule.deleted",
        "agent.scaled",
        "token.created",
        "delivery.replayed",
    } <= done
    assert "api.failed" not in server.stack.log("gateway")


# --- races between clients ------------------------------------------------------------------


def at_once(count: int, what: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(what, range(count)))


def test_the_same_key_from_many_clients_at_once_is_done_once(server: Server):
    body = {"schedule": "every day at 09:00", "message": "x"}
    made = at_once(8, lambda _: server.ask("POST", "/schedules", body, Idempotency_Key="k"))
    assert sorted(status for status, _ in made) == [200] * 7 + [201]
    assert len({shown["id"] for _, shown in made}) == 1
    prompt = {"prompt": "once"}
    asked = at_once(
        8, lambda _: server.ask("POST", "/agents/hello/run", prompt, Idempotency_Key="k")
    )
    assert {status for status, _ in asked} == {202}
    assert len({shown["work_item_id"] for _, shown in asked}) == 1
    assert sum(not shown["repeated"] for _, shown in asked) == 1
    assert server.stack.rows("SELECT count(*) AS n FROM drover_work_item") == [{"n": 1}]


def test_of_many_who_make_the_same_tenant_one_has_made_it(server: Server):
    made = at_once(6, lambda _: server.ask("POST", "/tenants", {"name": "acme"}))
    assert sorted(status for status, _ in made) == [201, *[409] * 5]
    assert len(server.stack.rows("SELECT 1 FROM drover_tenant WHERE name = ?", "acme")) == 1


# --- bodies ---------------------------------------------------------------------------------


def test_a_body_that_does_not_say_how_long_it_is_is_measured(server: Server):
    connection = http.client.HTTPConnection("127.0.0.1", server.stack.conf.port, timeout=20)
    pieces = iter([b'{"prompt": "', *[b"x" * 100_000] * 11, b'"}'])
    headers = {"Authorization": f"Bearer {server.token}"}
    connection.request("POST", "/v1/agents/hello/run", pieces, headers, encode_chunked=True)
    response = connection.getresponse()
    assert (response.status, json.load(response)["error"]["code"]) == (413, "too_large")
    connection.close()
    assert server.ask("GET", "/queue")[1]["items"] == []


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


def test_connections_are_given_back_when_an_answer_is_given(server: Server):
    def some(number: int) -> set[int]:
        paths = ("/agents", "/runs", f"/runs/{number + 999}", "/nothing")
        seen = {server.ask("GET", paths[turn % 4])[0] for turn in range(12)}
        return seen | {server.ask("POST", "/agents/hello/pause")[0]}

    assert set().union(*at_once(16, some)) == {200, 404}
    # The pool of PostgreSQL; SQLite uses the files again that it cannot close while it writes.
    most = 18 if server.stack.database_url.startswith("sqlite") else 8
    wait_for(lambda: open_connections(server.stack) <= most, 10, "connections are left open")


# --- the end --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_stop_by_the_api_ends_the_whole_drover_when_nothing_runs(new_stack: NewStack):
    stack = new_stack()
    stack.write_agent("hello", SKILL)
    up = stack.up()
    server = Server(stack)
    status, said = server.ask("POST", "/scheduler/stop")
    assert (status, said["state"]) == (202, "stopping")
    up.wait(30)
    assert stack.rows("SELECT state FROM drover_scheduler") == [{"state": "stopped"}]
