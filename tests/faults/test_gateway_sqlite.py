"""The SQLite file is locked by another writer, or its disk is full: late or 503, never lost."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.hooks import SECRET, Sender, hooked, stored
from tests.faults.real_fleet import RealFleet
from tests.faults.test_sqlite_locked import locked
from tests.parts.missing import missing

# Longer than a sender waits, shorter than the database waits for the lock.
TOO_LONG_SECONDS = 11.0
DISK_BYTES = 8 * 2**20


@pytest.fixture(scope="module")
def fleet(new_fleet: NewFleet) -> RealFleet:
    fleet = hooked(new_fleet(HOOK_SECRET=SECRET), "triage")
    fleet.ensure("gateway")
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
        time.sleep(3)
    sender.wait(20)
    assert sender.statuses == {200: 20}
    assert min(sender.seconds) > 2


@pytest.mark.fault("F14")
def test_the_answer_is_503_if_the_lock_lasts_longer_than_a_sender_waits(
    fleet: RealFleet,
) -> None:
    """Guard: an answer is sent in time, and it is an error. GitHub disconnects after 10 s."""
    with locked(fleet):
        sender = send(fleet, *[f"told-{number}" for number in range(5)]).wait(TOO_LONG_SECONDS)
        assert sender.statuses == {503: 5}
        assert max(sender.seconds) < 10
    assert send(fleet, *[f"told-{number}" for number in range(5)]).wait(20).statuses == {200: 5}
    ids = {identity: n for identity, n in stored(fleet).items() if identity.startswith("told")}
    assert ids == {f"told-{number}": 1 for number in range(5)}


# --- a full disk ----------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A small private file system."""
    disk = tmp_path / "disk"
    disk.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "drover-test", str(disk)]
    if os.getuid() != 0 or subprocess.run(argv, capture_output=True, check=False).returncode:
        missing("leave to mount a small disk", "run the tests as root")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.mark.fault("F15")
def test_a_full_disk_is_a_503_and_deliveries_resume_with_free_space(
    small_disk: Path, new_fleet: NewFleet
) -> None:
    """Guard: a failed commit is rolled back completely. With an answer before the commit,
    acknowledged deliveries are missing; the database file stays intact."""
    source = Path(new_fleet().stack.database_url.removeprefix("sqlite://"))
    database = small_disk / "drover.sqlite3"
    database.write_bytes(source.read_bytes())
    fleet = new_fleet(database_url=f"sqlite://{database}", HOOK_SECRET=SECRET)
    hooked(fleet, "triage")
    fleet.ensure("gateway")
    assert send(fleet, "before").wait(20).statuses == {200: 1}
    ballast = small_disk / "ballast"
    _fill(ballast)
    sender = Sender(fleet.stack.conf.port, [f"full-{n}" for n in range(2000)], stubborn=False)
    sender.start().wait(30)
    assert sender.statuses[503] > 0
    assert set(sender.statuses) <= {200, 503}
    assert {*sender.acknowledged, "before"} == stored(fleet).keys()
    ballast.unlink()
    assert send(fleet, "after").wait(20).statuses == {200: 1}
    assert fleet.stack.rows("PRAGMA integrity_check") == [{"integrity_check": "ok"}]


def _fill(path: Path) -> None:
    """Fill the file system except for a small rest."""
    left = os.statvfs(path.parent)
    path.write_bytes(b"x" * max(0, left.f_bavail * left.f_frsize - 300_000))
