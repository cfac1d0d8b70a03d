"""Redis is down or frozen during deliveries: senders do not notice."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.hooks import SECRET, Sender, hooked, stored
from tests.faults.real_fleet import RealFleet
from tests.parts.redis_part import RedisServer, valkey_binary

COUNT = 120


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(Path(valkey_binary()), tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def fleet(redis: RedisServer, new_fleet: NewFleet) -> RealFleet:
    fleet = hooked(new_fleet(redis.url, HOOK_SECRET=SECRET), "triage", scale=4)
    fleet.ensure("gateway", "worker-1", "beat")
    return fleet


@pytest.mark.parametrize("fault", ["down", "frozen"])
@pytest.mark.fault("F8", "F9")
def test_without_redis_deliveries_are_acknowledged_in_a_second_and_start_with_its_return(
    redis: RedisServer, fleet: RealFleet, fault: str
) -> None:
    """Guard: requests do not use Redis; a thread publishes after the commit. If requests published,
    the first answer with a frozen Redis would take longer than its sender waits."""
    fleet.stack.rows("UPDATE drover_agent SET work_queue_size = 1000")
    before = len(fleet.states("triage"))
    redis.kill() if fault == "down" else redis.freeze()
    try:
        ids = [f"{fault}-{number}" for number in range(COUNT)]
        sender = Sender(fleet.stack.conf.port, ids, connections=8, stubborn=False).start().wait(20)
        assert sender.statuses == {200: COUNT}
        assert max(sender.seconds) < 1
        assert ids == sorted(stored(fleet).keys() & set(ids), key=ids.index)
        time.sleep(1)
    finally:
        redis.start() if fault == "down" else redis.thaw()
    fleet.wait_for_states("triage", *["succeeded"] * (before + COUNT), seconds=25)
