"""Hints that get lost and hints that come too often: a run starts, and it starts once."""

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.real_fleet import (
    RECONCILE_SECONDS,
    SLACK_SECONDS,
    WHEN_TOLD,
    RealFleet,
    moment,
)


@pytest.fixture(scope="module")
def fleet(new_fleet: NewFleet) -> RealFleet:
    fleet = new_fleet()
    fleet.agent("unhinted")
    fleet.agent("too-often", WHEN_TOLD)
    fleet.sync()
    fleet.ensure("redis", "worker-1", "beat")
    return fleet


def test_a_kill_between_the_commit_and_the_hint_costs_one_sweep(fleet: RealFleet) -> None:
    """Guard: reconcile sends the hints of pending runs again. Remove `_hint_again` and the run
    stays pending."""
    fleet.ask_and_die_before_the_hint("unhinted")
    (run,) = fleet.wait_for_states("unhinted", "succeeded")
    waited = moment(run["started_at"]) - moment(run["created_at"])
    assert waited.total_seconds() < RECONCILE_SECONDS + 1 + SLACK_SECONDS
    assert len(fleet.notes("unhinted", "start")) == 1


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
