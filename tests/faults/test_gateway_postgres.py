"""PostgreSQL is restarted during deliveries: some 503s, never a false 2xx."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.hooks import SECRET, Sender, hooked, stored, worked
from tests.faults.real_fleet import RealFleet
from tests.parts.ports import free_port
from tests.parts.postgres_part import MIGRATED, PostgresServer
from tests.parts.waiting import wait_for

DELIVERIES = 2000


@pytest.fixture(scope="module")
def server(migrated_cluster: Path) -> Iterator[PostgresServer]:
    """A private server, because other tests use the server of the session; with fsync for
    crashes."""
    server = PostgresServer(free_port(), fsync=True).create(migrated_cluster)
    yield server
    server.remove()


@pytest.fixture(scope="module")
def fleet(server: PostgresServer, new_fleet: NewFleet) -> RealFleet:
    fleet = new_fleet(database_url=server.new_database(MIGRATED), HOOK_SECRET=SECRET)
    hooked(fleet, "triage", work_queue_size=DELIVERIES)
    fleet.ensure("gateway")
    return fleet


@pytest.mark.parametrize(("mode", "away_seconds"), [("fast", 0.5), ("immediate", 9)])
@pytest.mark.fault("F13")
def test_a_restart_under_load_costs_at_most_a_503_and_no_delivery(
    server: PostgresServer, fleet: RealFleet, mode: str, away_seconds: float
) -> None:
    """Guard: a failed commit is a 503, and the next request gets a new connection. With the broken
    connection every answer is a 503; with an answer before the commit ids are missing."""
    ids = [f"{mode}-{number}" for number in range(DELIVERIES)]
    sender = Sender(fleet.stack.conf.port, ids).start()
    wait_for(lambda: len(sender.acknowledged) > DELIVERIES // 4, 30)
    server.stop(mode)
    time.sleep(away_seconds)
    server.start()
    sender.wait(60)
    assert set(sender.statuses) <= {200, 503}
    # A short absence is waited for.
    assert (sender.statuses[503] > 0) == (away_seconds > 8)
    assert sender.broken == 0
    found = stored(fleet)
    assert {identity: found[identity] for identity in ids} == dict.fromkeys(ids, 1)
    assert worked(fleet).keys() >= set(ids)


@pytest.mark.fault("F13")
def test_an_expired_connection_causes_no_503(server: PostgresServer, fleet: RealFleet) -> None:
    """Guard: a batch that finds its connection dead is tried once more on a new one."""
    Sender(fleet.stack.conf.port, ["warm"]).start().wait(20)
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname <> 'postgres'"
    )
    time.sleep(0.2)
    sender = Sender(fleet.stack.conf.port, ["after"], stubborn=False).start().wait(20)
    assert sender.statuses == {200: 1}
