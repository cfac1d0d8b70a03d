"""Redis carries only hints: down, frozen, emptied or restarting it costs seconds, never work."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.real_fleet import LEASE_SECONDS, WHEN_TOLD, RealFleet, seconds_ago
from tests.parts.redis_part import RedisServer
from tests.parts.waiting import wait_for

# Until a worker and a beat have reconnected to Redis and worked once.
BACK_SECONDS = 6.0
# Long enough for every client to reach its longest delay before it reconnects.
DOWN_SECONDS = {"valkey-server": 30.0, "redis-server": 3.0}
one_is_enough = pytest.mark.parametrize("redis_binary", ["valkey"], indirect=True)
FAULTS = ("down", "frozen", "flushed", "flapping", "full")


@pytest.fixture(scope="module")
def redis(redis_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(redis_binary, tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def fleet(redis: RedisServer, new_fleet: NewFleet) -> RealFleet:
    fleet = new_fleet(redis.url)
    for name in FAULTS:
        fleet.agent(name)
        fleet.agent(f"{name}-cron", schedule="0 0 1 1 *")
        fleet.agent(f"{name}-longer", WHEN_TOLD)
    fleet.sync()
    fleet.ensure("worker-1", "beat")
    return fleet


def fire(fleet: RealFleet, agent: str) -> None:
    """Make the schedule of the agent due and wait for its firing, which needs no Redis."""
    fire_without_waiting(fleet, agent)
    fleet.wait_for_states(agent, "pending", seconds=4)


def fire_without_waiting(fleet: RealFleet, agent: str) -> None:
    fleet.stack.rows(
        "UPDATE drover_schedule SET next_fire_at = ? "
        "WHERE agent_id = (SELECT id FROM drover_agent WHERE name = ?)",
        seconds_ago(0),
        agent,
    )


def ask_without_waiting(fleet: RealFleet, agent: str, count: int) -> None:
    asked_at = time.monotonic()
    fleet.enqueue(agent, count)
    assert time.monotonic() - asked_at < 2, "a request must not wait for Redis"


def all_done(fleet: RealFleet, fault: str, count: int) -> None:
    """Wait until all requested work is done, and assert that no run was executed twice."""
    back_at = time.monotonic()
    fleet.wait_for_states(fault, *["succeeded"] * count)
    fleet.wait_for_states(f"{fault}-cron", "succeeded")
    assert time.monotonic() - back_at < BACK_SECONDS
    assert [note.what for note in fleet.notes(fault)] == ["start", "end"] * count
    assert [note.what for note in fleet.notes(f"{fault}-cron")] == ["start", "end"]


@pytest.mark.fault("F8")
def test_work_recorded_while_redis_is_down_starts_once_after_its_return(
    redis: RedisServer, fleet: RealFleet
) -> None:
    """Guard: the sweep sends the hints of pending runs again. Without `_hint_again` runs that were
    admitted during the outage never start."""
    fleet.enqueue("down-longer")
    fleet.wait_until_running("down-longer")
    redis.kill()
    try:
        down_at = time.monotonic()
        ask_without_waiting(fleet, "down", 5)
        fire(fleet, "down-cron")
        fleet.let_finish("down-longer")
        fleet.wait_for_states("down-longer", "succeeded", seconds=4)
        down_seconds = DOWN_SECONDS[redis.binary.name]
        time.sleep(max(0.0, down_at + down_seconds - time.monotonic()))
        assert fleet.work("down") == ["admitted"] + ["queued"] * 4
    finally:
        redis.start()
    all_done(fleet, "down", 5)


@one_is_enough
@pytest.mark.fault("F9")
def test_a_frozen_redis_delays_neither_requests_nor_endings_nor_the_sweep(
    redis: RedisServer, fleet: RealFleet
) -> None:
    """Guard: only the relay thread waits for Redis. If transactions published, requests would take
    seconds; if the sweep waited for Redis, a dead worker would be noticed late."""
    fleet.enqueue("frozen-longer")
    fleet.wait_until_running("frozen-longer")
    redis.freeze()
    try:
        frozen_at = time.monotonic()
        ask_without_waiting(fleet, "frozen", 3)
        fire(fleet, "frozen-cron")
        time.sleep(max(0.0, frozen_at + 3 - time.monotonic()))
        fleet.kill_worker()
        fleet.wait_for_states("frozen-longer", "lost", seconds=LEASE_SECONDS)
    finally:
        redis.thaw()
    fleet.wait_for_exit("worker-1")
    fleet.ensure("worker-1")
    all_done(fleet, "frozen", 3)


@pytest.mark.fault("F10")
def test_an_emptied_redis_loses_hints_but_no_runs(redis: RedisServer, fleet: RealFleet) -> None:
    """Guard: as above; also, the worker consumes its queues again after their keys were deleted."""
    fleet.ensure("worker-1", "beat")
    errors = errors_of(fleet)
    worker = fleet.latest_worker()
    fleet.freeze(worker["pid"])  # so that the hints stay in Redis
    fleet.enqueue("flushed", 2)
    fire(fleet, "flushed-cron")
    with redis.client() as client:
        wait_for(lambda: client.keys("*agent.*"), 5, "no hint came to Redis")
        client.flushall()
    os.kill(worker["pid"], signal.SIGCONT)
    all_done(fleet, "flushed", 2)
    assert errors_of(fleet) - errors == Counter()
    assert fleet.latest_worker()["id"] == worker["id"]


def errors_of(fleet: RealFleet) -> Counter[str]:
    """Log lines above WARNING, and tracebacks without a log line: kombu logs warnings with one.

    Tests before may have stopped Redis."""
    names = ("worker-1", "beat", "caller")
    lines = [line for name in names for line in fleet.stack.log(name).splitlines()]
    levels = ('"level": "error"', '"level": "critical"')
    return Counter(
        line
        for line in lines
        if line.startswith("Traceback") or any(level in line for level in levels)
    )


@pytest.mark.fault("F11")
def test_after_ten_restarts_of_redis_every_worker_gets_hints(
    redis: RedisServer, fleet: RealFleet
) -> None:
    """Guard: the pinned version of kombu, whose consumers survive a new connection. With older
    versions workers stay connected without receiving hints, and this test times out."""
    fleet.ensure("worker-1", "beat")
    (before,) = fleet.stack.rows("SELECT count(*) AS workers FROM drover_worker")
    # A pause of 0 twice in a row: Redis is killed again while its clients reconnect.
    for pause in (0.0, 1.0, 0.0, 0.0, 0.3, 0.0, 0.0, 0.1, 0.0, 0.0):
        redis.kill()
        fleet.enqueue("flapping")
        time.sleep(pause)
        redis.start()
    fire_without_waiting(fleet, "flapping-cron")
    all_done(fleet, "flapping", 10)
    (after,) = fleet.stack.rows("SELECT count(*) AS workers FROM drover_worker")
    assert after == before


@one_is_enough
@pytest.mark.fault("F12")
def test_a_hint_that_a_full_redis_refuses_is_sent_later_by_the_sweep(
    redis: RedisServer, fleet: RealFleet
) -> None:
    """Guard: a hint that Redis refuses is handled as a lost hint. If the error escaped, a request
    would fail although its work item is committed."""
    fleet.ensure("worker-1", "beat")
    errors = errors_of(fleet)
    with redis.client() as client:
        client.config_set("maxmemory", "1")
        ask_without_waiting(fleet, "full", 2)
        fire(fleet, "full-cron")
        time.sleep(1)
        assert fleet.states("full") == ["pending"]
        found = json.loads(fleet.stack.manage("doctor", "--json", seconds=180).stdout)["findings"]
        details = [each["detail"] for each in found if each["verdict"] == "wrong"]
        assert [text for text in details if text.startswith("is full: ")]
        client.config_set("maxmemory", "0")
    all_done(fleet, "full", 2)
    assert errors_of(fleet) - errors == Counter()
