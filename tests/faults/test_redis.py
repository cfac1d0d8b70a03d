"""Redis only wakes: down, frozen, emptied or flapping it costs seconds, never work."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.real_fleet import WHEN_TOLD, RealFleet, seconds_ago
from tests.parts.redis_part import RedisServer
from tests.parts.waiting import wait_for

# Until a worker and a beat have found Redis again and looked around once.
BACK_SECONDS = 8.0


@pytest.fixture(scope="module")
def redis(redis_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(redis_binary, tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def fleet(redis: RedisServer, new_fleet: NewFleet) -> RealFleet:
    fleet = new_fleet(redis.url)
    for name in ("down", "frozen", "flushed", "flapping"):
        fleet.agent(name)
        fleet.agent(f"{name}-cron", schedule="0 0 1 1 *")
        fleet.agent(f"{name}-longer", WHEN_TOLD)
    fleet.sync()
    fleet.ensure("worker-1", "beat")
    return fleet


def fire(fleet: RealFleet, agent: str) -> None:
    """The agent's schedule is due now."""
    fleet.stack.rows(
        "UPDATE drover_schedule SET next_fire_at = ? "
        "WHERE agent_id = (SELECT id FROM drover_agent WHERE name = ?)",
        seconds_ago(0),
        agent,
    )


def firings(fleet: RealFleet, agent: str) -> list[str]:
    sql = (
        "SELECT f.outcome FROM drover_firing f JOIN drover_schedule s ON s.id = f.schedule_id "
        "JOIN drover_agent a ON a.id = s.agent_id WHERE a.name = ?"
    )
    return [row["outcome"] for row in fleet.stack.rows(sql, agent)]


def test_while_it_is_down_work_is_recorded_and_afterwards_all_of_it_starts_once(
    redis: RedisServer, fleet: RealFleet
) -> None:
    fleet.ask("down-longer")
    fleet.wait_until_running("down-longer")
    redis.kill()
    asked_at = time.monotonic()
    fleet.ask("down", 5)
    assert time.monotonic() - asked_at < 2
    fire(fleet, "down-cron")
    wait_for(lambda: firings(fleet, "down-cron") == ["started"], 4, "no firing without Redis")
    fleet.let_go("down-longer")
    fleet.wait_for_states("down-longer", "succeeded", seconds=4)
    time.sleep(max(0.0, asked_at + 6 - time.monotonic()))
    assert fleet.work("down") == ["admitted"] + ["queued"] * 4
    redis.start()
    back_at = time.monotonic()
    fleet.wait_for_states("down", *["succeeded"] * 5)
    fleet.wait_for_states("down-cron", "succeeded")
    assert time.monotonic() - back_at < BACK_SECONDS
    assert [note.what for note in fleet.notes("down")] == ["start", "end"] * 5


def test_frozen_it_stops_nobody_who_asks_and_its_return_is_noticed(
    redis: RedisServer, fleet: RealFleet
) -> None:
    fleet.ask("frozen-longer")
    fleet.wait_until_running("frozen-longer")
    redis.freeze()
    try:
        frozen_at = time.monotonic()
        fleet.ask("frozen", 3)
        assert time.monotonic() - frozen_at < 2
        fire(fleet, "frozen-cron")
        wait_for(lambda: firings(fleet, "frozen-cron") == ["started"], 4, "no firing")
        fleet.let_go("frozen-longer")
        fleet.wait_for_states("frozen-longer", "succeeded", seconds=4)
        time.sleep(max(0.0, frozen_at + 7 - time.monotonic()))
    finally:
        redis.thaw()
    back_at = time.monotonic()
    fleet.wait_for_states("frozen", *["succeeded"] * 3)
    fleet.wait_for_states("frozen-cron", "succeeded")
    assert time.monotonic() - back_at < BACK_SECONDS
    assert [note.what for note in fleet.notes("frozen")] == ["start", "end"] * 3
