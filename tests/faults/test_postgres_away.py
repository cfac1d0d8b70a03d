"""PostgreSQL restarts, is down for long, or is down while a worker is stopped."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.faults.conftest import NewFleet
from tests.faults.line import Line
from tests.faults.real_fleet import (
    LEASE_SECONDS,
    WHEN_TOLD,
    WITH_DAEMONS,
    RealFleet,
    gone_within,
    seconds_ago,
)
from tests.parts.ports import free_port
from tests.parts.postgres_part import MIGRATED, PostgresServer
from tests.parts.processes import is_gone


@pytest.fixture(scope="module")
def server(migrated_cluster: Path) -> Iterator[PostgresServer]:
    """A private server, because other tests use the server of the session."""
    server = PostgresServer(free_port()).create(migrated_cluster)
    yield server
    server.remove()


@pytest.fixture(scope="module")
def fleet(server: PostgresServer, new_fleet: NewFleet) -> RealFleet:
    fleet = new_fleet(database_url=server.new_database(MIGRATED))
    fleet.agent("survives", WHEN_TOLD)
    fleet.agent("ends-meanwhile", WHEN_TOLD)
    fleet.agent("many", scale=8)
    fleet.agent("due", schedule="0 0 1 1 *")
    fleet.agent("too-long", WITH_DAEMONS)
    fleet.agent("cut-off", WITH_DAEMONS, on_lost="retry")
    fleet.sync()
    fleet.ensure("redis", "worker-1", "beat")
    return fleet


@contextmanager
def away(server: PostgresServer) -> Iterator[None]:
    """The server crashes, and is started again at the end."""
    server.stop("immediate")
    try:
        yield
    finally:
        server.start()


@pytest.mark.fault("F13")
def test_a_crash_of_the_database_ends_no_run_and_every_end_is_recorded(
    server: PostgresServer, fleet: RealFleet
) -> None:
    """Guard: recording an end is repeated on a new connection. Without the loop in `_finish` the
    second run stays running; with the broken connection all runs do."""
    fleet.enqueue("many", 8)  # so that every thread of the worker has a connection
    fleet.wait_for_states("many", *["succeeded"] * 8)
    for agent in ("survives", "ends-meanwhile"):
        fleet.enqueue(agent)
        fleet.wait_until_running(agent)
    with away(server):
        fleet.let_finish("ends-meanwhile")
        fleet.wait_for_notes("ends-meanwhile", "end")
        time.sleep(1)
    fleet.wait_for_states("ends-meanwhile", "succeeded")
    (run,) = fleet.runs("survives")
    assert not is_gone(run["pid"])
    fleet.let_finish("survives")
    fleet.wait_for_states("survives", "succeeded")
    fleet.stack.rows(
        "UPDATE drover_schedule SET next_fire_at = ? WHERE name = 'default'", seconds_ago(0)
    )
    fleet.wait_for_states("due", "succeeded")
    fleet.call_in_new_process("ask", "many", 8)
    fleet.wait_for_states("many", *["succeeded"] * 16)
    assert len(fleet.stack.rows("SELECT 1 FROM drover_worker")) == 1


@pytest.mark.fault("F13")
def test_a_database_outage_longer_than_the_lease_loses_the_run_but_leaves_no_process(
    server: PostgresServer, fleet: RealFleet
) -> None:
    """Guard: without renewals the guard kills the worker before the lease ends. Without it the run
    continues while another run may already use its slot."""
    fleet.enqueue("too-long")
    fleet.wait_for_notes("too-long", "note", 2)
    pids = [note.pid for note in fleet.notes("too-long")]
    with away(server):
        gone_within(pids, LEASE_SECONDS + 1, since=time.monotonic())
        assert fleet.wait_for_exit("worker-1") == 75
    fleet.wait_for_states("too-long", "lost")
    fleet.ensure("worker-1", "beat")
    fleet.let_finish("too-long")
    fleet.call_in_new_process("ask", "too-long")
    fleet.wait_for_states("too-long", "lost", "succeeded")


@pytest.mark.fault("F21")
def test_a_worker_cut_off_from_the_database_ends_its_run_and_changes_no_row_afterwards(
    server: PostgresServer, fleet: RealFleet
) -> None:
    """Guard: the guard ends a worker that cannot renew its lease; until then no other run starts.
    Beat and the second worker reach the database all the time."""
    fleet.stack.stop("worker-1")
    with Line(server.port) as line:
        role = fleet.stack._role("worker-1")
        url = role.env["DATABASE_URL"].replace(f":{server.port}/", f":{line.port}/")
        fleet.stack._spawn("worker-1", role.argv, {**role.env, "DATABASE_URL": url})
        fleet.call_in_new_process("ask", "cut-off")
        fleet.wait_for_notes("cut-off", "note", 2)
        fleet.wait_until_running("cut-off")
        pids = [note.pid for note in fleet.notes("cut-off")]
        line.cut()
        gone_within(pids, LEASE_SECONDS, since=time.monotonic())
        assert fleet.wait_for_exit("worker-1") == 75
        lost, pending = fleet.wait_for_states("cut-off", "lost", "pending")
        line.heal()
        fleet.let_finish("cut-off")
        fleet.ensure("worker-1")
        after, retried = fleet.wait_for_states("cut-off", "lost", "succeeded")
    assert after == lost and retried["id"] == pending["id"]
    assert fleet.notes("cut-off", "overlap") == []


def test_a_worker_that_waits_for_the_database_still_stops(
    fleet: RealFleet,
) -> None:
    """Guard: a signal handler must not use the connection that the interrupted code is using. If it
    did, the worker would wait for itself forever and still renew its lease."""
    fleet.ensure("worker-1")
    guard = fleet.stack.processes["worker-1"]
    try:
        with psycopg.connect(fleet.stack.database_url) as connection:
            connection.execute("LOCK TABLE drover_agent IN ACCESS EXCLUSIVE MODE")
            time.sleep(1.5)  # it reads the queues every second, so it waits for the database
            guard.terminate()
            time.sleep(0.5)
        assert fleet.wait_for_exit("worker-1", 15) == 0
    finally:
        guard.send_signal(signal.SIGQUIT)
