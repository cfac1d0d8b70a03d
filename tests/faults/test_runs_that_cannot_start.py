"""Programs that cannot be started and rooms that cannot be made: a reason, and a free slot."""

import psutil
import pytest

from tests.faults.conftest import NewFleet
from tests.faults.real_fleet import WHEN_TOLD, RealFleet


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
    fleet.sync()
    fleet.ensure("redis", "worker-1")
    return fleet


@pytest.mark.parametrize(
    ("agent", "error"),
    [
        ("missing", "spawn_failed: ENOENT: "),
        ("unknown", "spawn_failed: ENOENT: 'no-such-program-anywhere'"),
        ("plain", "spawn_failed: EACCES: "),
        ("folder", "spawn_failed: EACCES: "),
    ],
)
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


def test_without_room_for_a_run_it_fails_with_the_reason_and_others_go_on(
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
