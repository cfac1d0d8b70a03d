"""PostgreSQL restarts, is down for long, or is down while a worker is stopped."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from tests.faults.conftest import NewFleet
from tests.faults.line import Line
from tests.faults.network import RemoteHost
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
from tests.parts.waiting import wait_for


@pytest.fixture(scope="module")
def server(migrated_cluster: Path) -> Iterator[PostgresServer]:
    """A private server, because other tests use the server of the session."""
    # Also on the address of a cable that does not exist yet; the rules refuse all other clients.
    server = PostgresServer(free_port(), listen="'*'").create(migrated_cluster)
    yield server
    server.remove()


@pytest.fixture(scope="module")
def fleet(server: PostgresServer, new_fleet: NewFleet) -> RealFleet:
    fleet = new_fleet(database_url=server.new_database(MIGRATED), DROVER_WORKERS="2")
    fleet.agent("survives", WHEN_TOLD)
    fleet.agent("ends-meanwhile", WHEN_TOLD)
    fleet.agent("many", scale=8)
    fleet.agent("due", schedule="0 0 1 1 *")
    fleet.agent("too-long", WITH_DAEMONS)
    fleet.agent("cut-off", WITH_DAEMONS, on_lost="retry")
    fleet.agent("reports-late", WHEN_TOLD, on_lost="retry")
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


def start_unguarded_worker_over(line: Line, fleet: RealFleet) -> subprocess.Popen[bytes]:
    """Start worker-1 so that it reaches the database through the line only."""
    fleet.stack.stop("worker-1")
    role = fleet.stack._role("worker-1")
    url = role.env["DATABASE_URL"].replace(f":{line.target_port}/", f":{line.port}/")
    argv = role.argv[role.argv.index("--") + 1 :]
    return fleet.stack._spawn("worker-1", argv, {**role.env, "DATABASE_URL": url})


def start_worker_on(host: RemoteHost, fleet: RealFleet) -> subprocess.Popen[bytes]:
    """Start worker-1, with its guard, where only the cable leads to the database."""
    fleet.stack.stop("worker-1")
    role = fleet.stack._role("worker-1")
    url = role.env["DATABASE_URL"].replace("@127.0.0.1:", f"@{host.address}:")
    return fleet.stack._spawn("worker-1", host.argv(role.argv), {**role.env, "DATABASE_URL": url})


@pytest.mark.fault("F21")
def test_a_worker_cut_off_from_the_database_ends_its_run_before_another_worker_repeats_it(
    server: PostgresServer, fleet: RealFleet
) -> None:
    """Guard: the guard ends a worker that cannot renew its lease, and no other run starts while
    the lease lasts. Beat and the second worker reach the database all the time: with a shorter
    wait for the lease the second attempt would overlap the first."""
    with RemoteHost() as host:
        server.add_rule(f"host all postgres {host.own_address}/32 trust")
        server.execute("SELECT pg_reload_conf()")
        start_worker_on(host, fleet)
        fleet.call_in_new_process("ask", "cut-off")
        fleet.wait_for_notes("cut-off", "note", 2)
        fleet.wait_until_running("cut-off")
        pids = [note.pid for note in fleet.notes("cut-off")]
        fleet.ensure("worker-2")
        host.unplug()
        gone_within(pids, LEASE_SECONDS, since=time.monotonic())
        ended_at = datetime.now(UTC)
        assert fleet.wait_for_exit("worker-1") == 75
        fleet.let_finish("cut-off")
        lost, retried = fleet.wait_for_states("cut-off", "lost", "succeeded")
        host.plug_in()
        time.sleep(2)  # what the first worker has sent arrives
    assert fleet.runs("cut-off") == [lost, retried]
    assert retried["worker_id"] != lost["worker_id"] and retried["started_at"] > ended_at
    assert fleet.notes("cut-off", "overlap") == []
    fleet.stack.stop("worker-2")
    fleet.ensure("worker-1")


@pytest.mark.fault("F21")
def test_a_result_that_arrives_after_a_network_partition_changes_no_row(
    server: PostgresServer, fleet: RealFleet
) -> None:
    """Guard: `finish_run` names the owner and the old state of the run. Without both conditions the
    lost run becomes succeeded. A worker that was declared dead starts no run: else it would start
    the second attempt before it kills itself. The server ends idle transactions: without that the
    renewal of the lease, which was cut off before its commit, keeps the row of the worker locked,
    and the run is never lost.

    The worker has no guard here, so that it is alive to report."""
    fleet.ensure("worker-1")
    with Line(server.port) as line:
        start_unguarded_worker_over(line, fleet)
        fleet.call_in_new_process("ask", "reports-late")
        fleet.wait_until_running("reports-late")
        line.cut_at(b"COMMIT")
        wait_for(lambda: line.is_cut, 10, "the worker did not renew its lease")
        fleet.let_finish("reports-late")
        fleet.wait_for_notes("reports-late", "end")
        runs = fleet.wait_for_states("reports-late", "lost", "pending")
        events = events_of(fleet, runs[0]["id"])
        line.reconnect()
        assert fleet.wait_for_exit("worker-1") == -signal.SIGKILL  # it kills itself
    assert "lease.fenced" in fleet.stack.log("worker-1")
    assert fleet.runs("reports-late") == runs
    assert events_of(fleet, runs[0]["id"]) == events
    fleet.ensure("worker-1")
    lost, retried = fleet.wait_for_states("reports-late", "lost", "succeeded")
    assert lost == runs[0] and retried["id"] == runs[1]["id"]


def events_of(fleet: RealFleet, run_id: int) -> list[str]:
    sql = "SELECT name FROM drover_run_event WHERE run_id = ? ORDER BY id"
    return [row["name"] for row in fleet.stack.rows(sql, run_id)]


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
