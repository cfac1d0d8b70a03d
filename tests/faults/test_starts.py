"""Admitted work starts once, whatever happens to its hint, or fails with a reason."""

from pathlib import Path

import psutil
import pytest

from tests.faults.conftest import NewFleet
from tests.faults.disks import fill, small_disk
from tests.faults.real_fleet import (
    RECONCILE_SECONDS,
    SLACK_SECONDS,
    WHEN_TOLD,
    RealFleet,
    moment,
)
from tests.parts.fixtures import NewStack
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

DISK_BYTES = 4 * 2**20


@pytest.fixture(scope="module")
def fleet(new_fleet: NewFleet) -> RealFleet:
    fleet = new_fleet()
    fleet.agent("missing", command=["./not-there.sh"])
    fleet.agent("unknown", command=["no-such-program-anywhere"])
    plain = fleet.stack.project / "agents" / fleet.agent("plain", command=["./plain.txt"])
    (plain / "plain.txt").write_text("not a program\n")
    folder = fleet.stack.project / "agents" / fleet.agent("folder", command=["./folder"])
    (folder / "folder").mkdir()
    fleet.agent("bystander")
    fleet.agent("going-on", WHEN_TOLD)
    fleet.agent("unhinted")
    fleet.agent("hinted-twice")
    fleet.agent("too-often", WHEN_TOLD)
    fleet.sync()
    fleet.ensure("redis", "worker-1", "beat")
    return fleet


@pytest.mark.fault("F3")
def test_a_run_whose_hint_was_never_sent_starts_after_one_sweep(fleet: RealFleet) -> None:
    """Guard: reconcile sends the hints of pending runs again. Without `_hint_again` the run
    stays pending."""
    fleet.ask_and_die("before_the_hint", "unhinted")
    (run,) = fleet.wait_for_states("unhinted", "succeeded")
    waited = moment(run["started_at"]) - moment(run["created_at"])
    assert waited.total_seconds() < RECONCILE_SECONDS + 1 + SLACK_SECONDS
    assert len(fleet.notes("unhinted", "start")) == 1


def claim_noops(fleet: RealFleet) -> float:
    """The total that /metrics shows as drover_claim_noop_total."""
    rows = fleet.stack.rows("SELECT value FROM drover_metric_total WHERE name = 'claim_noop'")
    return sum(float(row["value"]) for row in rows)


@pytest.mark.fault("F4")
def test_a_second_hint_after_the_death_of_the_first_sender_starts_nothing_and_is_counted(
    fleet: RealFleet,
) -> None:
    """Guard: a start is an update that requires the state pending. Without that condition the
    second hint starts the program again; without the count nothing shows how often it happens."""
    fleet.ask_and_die("after_the_hint", "hinted-twice")
    (run,) = fleet.wait_for_states("hinted-twice", "succeeded")
    waited = moment(run["started_at"]) - moment(run["created_at"])
    assert waited.total_seconds() < RECONCILE_SECONDS + SLACK_SECONDS
    before = claim_noops(fleet)
    fleet.call("hint", run["id"], 1)
    wait_for(lambda: claim_noops(fleet) > before, 10, lambda: fleet.facts("hinted-twice"))
    assert len(fleet.notes("hinted-twice", "start")) == 1


@pytest.mark.fault("F20")
def test_a_hint_that_is_delivered_a_hundred_times_starts_one_run(fleet: RealFleet) -> None:
    """Guard: a start is an update that requires the state pending. Without that condition four
    threads execute the run in parallel, and more than once."""
    fleet.enqueue("too-often")
    (run,) = fleet.runs("too-often")
    fleet.call("hint", run["id"], 50)
    fleet.wait_until_running("too-often")
    fleet.call("hint", run["id"], 50)
    fleet.let_finish("too-often")
    fleet.wait_for_states("too-often", "succeeded")
    # When another run has ended, all earlier hints in the queue have been handled.
    fleet.enqueue("too-often")
    fleet.wait_for_states("too-often", "succeeded", "succeeded")
    assert [note.what for note in fleet.notes("too-often")] == ["start", "end"] * 2


@pytest.mark.parametrize(
    ("agent", "error"),
    [
        ("missing", "spawn_failed: ENOENT: "),
        ("unknown", "spawn_failed: ENOENT: 'no-such-program-anywhere'"),
        ("plain", "spawn_failed: EACCES: "),
        ("folder", "spawn_failed: EACCES: "),
    ],
)
@pytest.mark.fault("F44")
def test_a_program_that_cannot_start_fails_with_the_errno_and_frees_its_slot(
    fleet: RealFleet, agent: str, error: str
) -> None:
    """Guard: a failed start is an outcome. If it escaped as an exception, the first run would keep
    the only slot of the agent and the second run would never start."""
    fleet.enqueue(agent, 2)
    for run in fleet.wait_for_states(agent, "failed", "failed"):
        assert run["error"].startswith(error)
        assert run["slot"] is None
    below = psutil.Process(fleet.latest_worker()["pid"]).children(recursive=True)
    assert [child.pid for child in below] == []


@pytest.mark.fault("F16")
def test_a_run_without_disk_space_fails_with_the_reason_and_other_runs_continue(
    fleet: RealFleet,
) -> None:
    """Guard: an error before the program starts ends the run. If it escaped, the run would stay
    running without a process."""
    fleet.enqueue("going-on")
    fleet.wait_until_running("going-on")
    with small_disk(fleet.stack.data / "runs", DISK_BYTES) as rooms:
        fill(rooms / "ballast", rest=0)
        fleet.enqueue("bystander")
        (run,) = fleet.wait_for_states("bystander", "failed")
        assert "No space left on device" in run["error"]
        assert fleet.states("going-on") == ["running"]
        (rooms / "ballast").unlink()
        fleet.enqueue("bystander")
        fleet.wait_for_states("bystander", "failed", "succeeded")
    fleet.let_finish("going-on")
    fleet.wait_for_states("going-on", "succeeded")


def test_a_worker_that_cannot_take_its_lease_exits(new_stack: NewStack) -> None:
    """Guard: `_start` ends the process. Celery only logs exceptions of signal handlers, and every
    run that a worker without a lease receives would stay pending."""
    stack = new_stack()
    stack.rows("ALTER TABLE drover_worker RENAME TO taken_away")
    stack.start("redis")
    with pytest.raises(AssertionError, match=r"worker\.not_started"):
        stack.start("worker-1")


def test_a_worker_without_tables_waits_for_them_and_can_be_stopped(tmp_path: Path) -> None:
    with PrivateStack(tmp_path) as no_tables:
        no_tables.start("redis")
        worker = no_tables.begin("worker-1")
        wait_for(lambda: "schema.differs" in no_tables.log("worker-1"), 30)
        assert worker.poll() is None
        no_tables.stop("worker-1", seconds=10)
