"""Clients whose connections break at random while real runs happen, on a real Drover."""

import json
import random
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.gateway_app.streams.client import Event, Stream
from tests.parts.fixtures import NewStack
from tests.parts.redis_part import RedisServer, valkey_binary
from tests.parts.stack_part import PrivateStack

SKILL = '---\ncommand: ["sh", "-c", "test $((DROVER_RUN_ID % 5)) != 0"]\nscale: 4\n---\nHello.\n'
RUNS, CLIENTS = 60, 6
HAPPENED = (
    "SELECT id, run_id, name FROM drover_run_event WHERE name IN "
    "('run.started', 'run.succeeded', 'run.failed') ORDER BY id"
)


class Reader:
    """Disconnects after a few events or within an event, and resumes."""

    def __init__(self, port: int, token: str, number: int) -> None:
        self.port, self.token = port, token
        self.chance = random.Random(number)
        self.received: list[Event] = []
        self.connections = 0
        with Stream(port, token) as stream:
            assert stream.next().name == "open"
            self.after = stream.last_id

    def read(self, done: threading.Event, count: int) -> None:
        while not (done.is_set() and len(self.received) >= count):
            self.connections += 1
            with suppress(OSError, HTTPException):
                self._read_some()

    def _read_some(self) -> None:
        left = self.chance.randint(1, 40)
        with Stream(self.port, self.token, after=self.after, timeout=1.5) as stream:
            # Another thread closes the connection at a random moment.
            cut = threading.Timer(self.chance.uniform(0.05, 1.0), stream.cut)
            cut.start()
            for event in stream.events():
                if event.name == "notification":
                    self.received.append(event)
                    self.after = event.id
                    left -= 1
                if not left:
                    break
            cut.cancel()


@pytest.fixture
def stack(new_stack: NewStack, tmp_path: Path) -> Iterator[PrivateStack]:
    """A worker, the gateway and Redis."""
    redis = RedisServer(valkey_binary(), tmp_path).start()
    stack = new_stack(redis.url, DROVER_API_RATE="100000")
    stack.write_agent("hello", SKILL)
    assert stack.manage("discover", "--sync").returncode == 0
    for name in ("worker-1", "gateway"):
        stack.start(name)
    yield stack
    stack.close()
    redis.stop()


def run_agent(stack: PrivateStack, token: str) -> None:
    request = urllib.request.Request(
        f"{stack.url}/v1/agents/hello/run",
        data=json.dumps({"prompt": "x"}).encode(),
        headers={"Authorization": f"Bearer {token}"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert answer.status == 202
    time.sleep(0.01)


@pytest.mark.fault("F73")
def test_clients_that_reconnect_get_every_entry_once(stack: PrivateStack):
    token = stack.manage("token", "create", "test", "--scope", "operate").stdout.strip()
    readers = [Reader(stack.conf.port, token, number) for number in range(CLIENTS)]
    done = threading.Event()
    with ThreadPoolExecutor(CLIENTS) as pool:
        reading = [pool.submit(reader.read, done, 2 * RUNS) for reader in readers]
        for _ in range(RUNS):
            run_agent(stack, token)
        done.set()
        for each in reading:
            each.result(90)
    rows = stack.rows(HAPPENED)
    assert len(rows) == 2 * RUNS and {"run.failed", "run.succeeded"} < {r["name"] for r in rows}
    for reader in readers:
        assert [event.id for event in reader.received] == [row["id"] for row in rows]
        assert reader.connections > 5
    kinds = {"run.succeeded": "run.completed"}
    kinds_of_runs = [(event.data["run_id"], event.data["kind"]) for event in readers[0].received]
    assert kinds_of_runs == [(row["run_id"], kinds.get(row["name"], row["name"])) for row in rows]
