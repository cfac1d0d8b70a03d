"""Admitted work starts once, whatever happens to its hint, or fails with a reason."""

from pathlib import Path

import psutil
import pytest

from tests.faults.conftest import NewFleet
from tests.faults.real_fleet import (
    RECONCILE_SECONDS,
    SLACK_SECONDS,
    WHEN_TOLD,
    RealFleet,
    moment,
)
from tests.parts.stack_part import PrivateStack


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
    fleet.agent("too-often", WHEN_TOLD)
    fleet.sync()
    fleet.ensure("redis", "worker-1", "beat")
    return fleet


@pytest.mark.fault("F3")
def test_a_kill_between_the_commit_and_the_hint_costs_one_sweep(fleet: RealFleet) -> None:
    """Guard: reconcile sends the hints of pending runs again. Remove `_hint_again` and the run
    stays pending."""
    fleet.ask_and_die_before_the_hint("unhinted")
    (run,) = fleet.wait_for_states("unhinted", "succeeded")
    waited = moment(run["started_at"]) - moment(run["created_at"])
    assert waited.total_seconds() < RECONCILE_SECONDS + 1 + SLACK_SECONDS
    assert len(fleet.notes("unhinted", "start")) == 1


@pytest.mark.fault("F20")
def test_a_hint_that_comes_a_hundred_times_starts_one_run(fleet: RealFleet) -> None:
    """Guard: a start is an update that needs the run to be pending. Take that condition out and
    four threads execute the run at once, and then again."""
    fleet.ask("too-often")
    (run,) = fleet.runs("too-often")
    fleet.call("hint", run["id"], 50)
    fleet.wait_until_running("too-often")
    fleet.call("hint", run["id"], 50)
    fleet.let_go("too-often")
    fleet.wait_for_states("too-often", "succeeded")
    # Those behind them in the queue have been looked at when another run is through.
    fleet.ask("too-often")
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
    """Guard: a failed start is an outcome like any other. Let it escape as an exception and the
    first run keeps the agent's only slot: the second never comes."""
    fleet.ask(agent, 2)
    for run in fleet.wait_for_states(agent, "failed", "failed"):
        assert run["error"].startswith(error)
        assert run["slot"] is None
    below = psutil.Process(fleet.living_worker()["pid"]).children(recursive=True)
    assert [child.pid for child in below] == []


@pytest.mark.fault("F16")
def test_a_run_without_disk_space_fails_with_the_reason_and_others_continue(
    fleet: RealFleet,
) -> None:
    """Guard: whatever happens before the program starts ends the run. Let it escape and the run
    stays running with nobody to finish it."""
    fleet.ask("going-on")
    fleet.wait_until_running("going-on")
    rooms = fleet.stack.data / "runs"
    rooms.rename(rooms.with_name("away"))
    rooms.write_text("a file where the rooms should be")
    fleet.ask("bystander")
    (run,) = fleet.wait_for_states("bystander", "failed")
    assert run["error"].startswith("not_performed: ")
    assert str(rooms) in run["error"]
    rooms.unlink()
    rooms.with_name("away").rename(rooms)
    fleet.let_go("going-on")
    fleet.wait_for_states("going-on", "succeeded")
    fleet.ask("bystander")
    fleet.wait_for_states("bystander", "failed", "succeeded")


def test_a_worker_that_cannot_take_its_lease_does_not_stay_up_without_one(tmp_path: Path) -> None:
    """Guard: `_begin` ends the process. Celery only logs what a listener of its signals raises,
    and every run that such a worker takes would stay pending."""
    with PrivateStack(tmp_path) as no_tables:
        no_tables.start("redis")
        with pytest.raises(AssertionError, match=r"worker\.not_started"):
            no_tables.start("worker-1")
