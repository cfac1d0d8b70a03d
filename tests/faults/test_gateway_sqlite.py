"""The SQLite file is locked by another writer, or its disk is full: late or 503, never lost."""

import json
import time
from pathlib import Path

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.disks import fill, small_disk
from tests.faults.hooks import SECRET, Sender, hooked, stored
from tests.faults.real_fleet import RealFleet, seconds_ago
from tests.faults.test_sqlite_locked import locked

# Longer than a sender waits, shorter than the database waits for the lock.
TOO_LONG_SECONDS = 11.0
# Shorter and longer than the database waits for the lock; the latter longer than a lease, too.
SHORT_LOCK_SECONDS, LONG_LOCK_SECONDS = 5.0, 60.0
# More than the 100 MB below which doctor calls a disk full.
DISK_BYTES = 120 * 2**20


@pytest.fixture(scope="module")
def fleet(new_fleet: NewFleet) -> RealFleet:
    fleet = new_fleet(HOOK_SECRET=SECRET)
    for name in ("due", "due-later"):
        fleet.agent(name, schedule="0 0 1 1 *")
    hooked(fleet, "triage")
    fleet.ensure("gateway", "redis", "beat", "worker-1")
    return fleet


def send(fleet: RealFleet, *ids: str) -> Sender:
    return Sender(fleet.stack.conf.port, ids, connections=len(ids), stubborn=False).start()


@pytest.mark.fault("F14")
def test_deliveries_are_stored_late_while_another_writer_locks_the_file_for_seconds(
    fleet: RealFleet,
) -> None:
    """Guard: the writing thread waits for the lock, and senders for the writing thread."""
    with locked(fleet):
        sender = send(fleet, *[f"late-{number}" for number in range(20)])
        time.sleep(SHORT_LOCK_SECONDS)
    sender.wait(20)
    assert sender.statuses == {200: 20}
    assert min(sender.seconds) > SHORT_LOCK_SECONDS - 1
    assert stored(fleet) == {f"late-{number}": 1 for number in range(20)}


@pytest.mark.timeout(180)
@pytest.mark.fault("F14")
def test_a_lock_longer_than_every_wait_is_a_503_and_loses_no_firing(fleet: RealFleet) -> None:
    """Guard: an answer is sent in time, and it is an error: GitHub disconnects after 10 s. Beat
    survives a failed transaction, else the instant would fire with the next beat only."""
    ids = [f"refused-{number}" for number in range(5)]
    make_due(fleet, "due", in_seconds=2)
    make_due(fleet, "due-later", in_seconds=LONG_LOCK_SECONDS / 2)
    with locked(fleet):
        until = time.monotonic() + LONG_LOCK_SECONDS
        while time.monotonic() < until - TOO_LONG_SECONDS:
            sender = send(fleet, *ids).wait(TOO_LONG_SECONDS)  # asserts that Retry-After is set
            assert sender.statuses == {503: 5}
            assert max(sender.seconds) < 10
        time.sleep(until - time.monotonic())
    assert fleet.stack.processes["beat"].poll() is None
    fleet.ensure("worker-1")  # the guard has ended a worker without a lease, and `up` restarts it
    fleet.wait_for_states("due", "succeeded")
    fleet.wait_for_states("due-later", "succeeded")
    assert len(fleet.stack.rows("SELECT 1 FROM drover_firing")) == 2
    assert send(fleet, *ids).wait(20).statuses == {200: 5}
    assert {name: n for name, n in stored(fleet).items() if name in ids} == dict.fromkeys(ids, 1)


def make_due(fleet: RealFleet, agent: str, in_seconds: float) -> None:
    fleet.stack.rows(
        "UPDATE drover_schedule SET next_fire_at = ? "
        "WHERE agent_id = (SELECT id FROM drover_agent WHERE name = ?)",
        seconds_ago(-in_seconds),
        agent,
    )


# --- a full disk ----------------------------------------------------------------------------


def doctor_about_the_disk(fleet: RealFleet) -> str:
    done = fleet.stack.manage("doctor", "--json", seconds=180)
    findings = json.loads(done.stdout)["findings"]
    (verdict,) = (f["verdict"] for f in findings if f["check"] == "disk of the database")
    return str(verdict)


@pytest.mark.fault("F15")
def test_a_full_disk_is_a_503_and_deliveries_resume_with_free_space(
    tmp_path: Path, new_fleet: NewFleet
) -> None:
    """Guard: a failed commit is rolled back completely. With an answer before the commit,
    acknowledged deliveries are missing; the database file stays intact."""
    source = Path(new_fleet().stack.database_url.removeprefix("sqlite://"))
    with small_disk(tmp_path, DISK_BYTES) as disk:
        database = disk / "drover.sqlite3"
        database.write_bytes(source.read_bytes())
        fleet = new_fleet(database_url=f"sqlite://{database}", HOOK_SECRET=SECRET)
        hooked(fleet, "triage")
        fleet.ensure("gateway")
        assert send(fleet, "before").wait(20).statuses == {200: 1}
        _fill_and_free(fleet, disk / "ballast")


def _fill_and_free(fleet: RealFleet, ballast: Path) -> None:
    fill(ballast, rest=300_000)
    sender = Sender(fleet.stack.conf.port, [f"full-{n}" for n in range(2000)], stubborn=False)
    sender.start().wait(30)
    assert sender.statuses[503] > 0
    assert set(sender.statuses) <= {200, 503}
    assert {*sender.acknowledged, "before"} == stored(fleet).keys()
    assert doctor_about_the_disk(fleet) == "wrong"
    ballast.unlink()
    assert send(fleet, "after").wait(20).statuses == {200: 1}
    assert doctor_about_the_disk(fleet) == "warning"
    assert fleet.stack.rows("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
