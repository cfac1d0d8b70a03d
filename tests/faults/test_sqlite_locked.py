"""Another process locks the SQLite file for seconds: all changes succeed, but later."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.real_fleet import WHEN_TOLD, RealFleet, seconds_ago
from tests.parts.processes import is_gone

LOCKED_SECONDS = 5.0


@pytest.fixture(scope="module")
def fleet(new_fleet: NewFleet) -> RealFleet:
    # Nearly the default lease: it must last longer than the lock.
    fleet = new_fleet(DROVER_LEASE_SECONDS="20")
    fleet.agent("going-on", WHEN_TOLD)
    fleet.agent("asked")
    fleet.agent("due", schedule="0 0 1 1 *")
    fleet.sync()
    fleet.ensure("redis", "worker-1", "beat")
    return fleet


@contextmanager
def locked(fleet: RealFleet) -> Iterator[None]:
    path = fleet.stack.database_url.removeprefix("sqlite://")
    with closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.mark.fault("F14")
def test_changes_during_a_lock_of_the_file_are_recorded_late_but_complete(
    fleet: RealFleet,
) -> None:
    """Guard: writers wait 20 s for the lock. With 0 s the request fails immediately."""
    fleet.enqueue("going-on")
    (started,) = fleet.wait_until_running("going-on")
    fleet.stack.rows(
        "UPDATE drover_schedule SET next_fire_at = ? WHERE name = 'default'", seconds_ago(0)
    )
    asking = threading.Thread(target=fleet.enqueue, args=("asked", 3))
    with locked(fleet):
        locked_at = time.monotonic()
        asking.start()
        fleet.let_finish("going-on")
        fleet.wait_for_notes("going-on", "end")
        time.sleep(locked_at + LOCKED_SECONDS - time.monotonic())
        assert asking.is_alive()
        assert fleet.states("going-on") == ["running"]
    asking.join(10)
    fleet.wait_for_states("going-on", "succeeded")
    fleet.wait_for_states("asked", "succeeded", "succeeded", "succeeded")
    fleet.wait_for_states("due", "succeeded")
    assert is_gone(started.pid)
    assert len(fleet.stack.rows("SELECT 1 FROM drover_worker")) == 1
    assert fleet.stack.rows("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
