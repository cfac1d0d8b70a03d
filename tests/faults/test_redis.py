"""Redis carries only hints: down, frozen, emptied or restarting it costs seconds, never work."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.real_fleet import LEASE_SECONDS, WHEN_TOLD, RealFleet, seconds_ago
from tests.parts.redis_part import RedisServer
from tests.parts.waiting import wait_for

# Until a worker and a beat have found Redis again and looked around once.
BACK_SECONDS = 6.0
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
    """The agent's schedule is due now, and that is recorded although Redis is away."""
    fire_unseen(fleet, agent)
    fleet.wait_for_states(agent, "pending", seconds=4)


def fire_unseen(fleet: RealFleet, agent: str) -> None:
    fleet.stack.rows(
        "UPDATE drover_schedule SET next_fire_at = ? "
        "WHERE agent_id = (SELECT id FROM drover_agent WHERE name = ?)",
        seconds_ago(0),
        agent,
    )


def ask_without_waiting(fleet: RealFleet, agent: str, count: int) -> None:
    asked_at = time.monotonic()
    fleet.ask(agent, count)
    assert time.monotonic() - asked_at < 2, "whoever asks must not wait for Redis"


def all_done(fleet: RealFleet, fault: str, count: int) -> None:
    """All that was asked for meanwhile is through soon, and nothing was executed twice."""
    back_at = time.monotonic()
    fleet.wait_for_states(fault, *["succeeded"] * count)
    fleet.wait_for_states(f"{fault}-cron", "succeeded")
    assert time.monotonic() - back_at < BACK_SECONDS
    assert [note.what for note in fleet.notes(fault)] == ["start", "end"] * count
    assert [note.what for note in fleet.notes(f"{fault}-cron")] == ["start", "end"]


@pytest.mark.fault("F8")
def test_work_recorded_while_redis_is_down_starts_once_afterwards(
    redis: RedisServer, fleet: RealFleet
) -> None:
    """Guard: rows are the truth, and the sweep sends lost hints again. Remove `_hint_again` and
    what was admitted meanwhile never starts."""
    fleet.ask("down-longer")
    fleet.wait_until_running("down-longer")
    redis.kill()
    try:
        down_at = time.monotonic()
        ask_without_waiting(fleet, "down", 5)
        fire(fleet, "down-cron")
        fleet.let_go("down-longer")
        fleet.wait_for_states("down-longer", "succeeded", seconds=4)
        time.sleep(max(0.0, down_at + 3 - time.monotonic()))
        assert fleet.work("down") == ["admitted"] + ["queued"] * 4
    finally:
        redis.start()
    all_done(fleet, "down", 5)


@one_is_enough
@pytest.mark.fault("F9")
def test_a_frozen_redis_delays_neither_requests_nor_endings_nor_the_sweep(
    redis: RedisServer, fleet: RealFleet
) -> None:
    """Guard: nobody but the relay thread waits for Redis. Publish in the transaction and asking
    takes seconds; ask Redis in the sweep and a dead worker is noticed late."""
    fleet.ask("frozen-longer")
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
    """Guard: as above; besides, the worker finds its queues again when their keys are gone."""
    fleet.ensure("worker-1", "beat")
    worker = fleet.living_worker()
    os.kill(worker["pid"], signal.SIGSTOP)  # so that the hints are still there
    fleet.ask("flushed", 2)
    fire(fleet, "flushed-cron")
    with redis.client() as client:
        wait_for(lambda: client.keys("*agent.*"), 5, "no hint came to Redis")
        client.flushall()
    os.kill(worker["pid"], signal.SIGCONT)
    all_done(fleet, "flushed", 2)


@pytest.mark.fault("F11")
def test_after_five_restarts_of_redis_every_worker_gets_hints(
    redis: RedisServer, fleet: RealFleet
) -> None:
    """Guard: not ours but the pinned kombu's, whose consumers outlive their connection; older ones
    stay connected and deaf, and with such a one this times out."""
    fleet.ensure("worker-1", "beat")
    (before,) = fleet.stack.rows("SELECT count(*) AS workers FROM drover_worker")
    for pause in (0.0, 1.0, 0.0, 0.3, 0.0):
        redis.kill()
        fleet.ask("flapping")
        time.sleep(pause)
        redis.start()
    fire_unseen(fleet, "flapping-cron")
    all_done(fleet, "flapping", 5)
    (after,) = fleet.stack.rows("SELECT count(*) AS workers FROM drover_worker")
    assert after == before


@one_is_enough
@pytest.mark.fault("F12")
def test_a_full_redis_takes_no_hint_and_the_sweep_sends_it_later(
    redis: RedisServer, fleet: RealFleet
) -> None:
    """Guard: a hint that Redis refuses is a lost one like any other. Let the refusal escape and
    whoever asks gets an error for work that is durable already."""
    fleet.ensure("worker-1", "beat")
    with redis.client() as client:
        client.config_set("maxmemory", "1")
        ask_without_waiting(fleet, "full", 2)
        fire(fleet, "full-cron")
        time.sleep(1)
        assert fleet.states("full") == ["pending"]
        client.config_set("maxmemory", "0")
    all_done(fleet, "full", 2)
