"""Examples that call each other and use signals, run with `manage.py up`."""

from tests.end_to_end.test_examples import RUNS, ended, make_due, printed
from tests.parts.stack_part import PrivateStack, Row
from tests.parts.waiting import wait_for


def start_run(stack: PrivateStack, agent: str) -> None:
    done = stack.manage("run", agent)
    assert done.returncode == 0, done.stderr


def all_ended(stack: PrivateStack, agent: str, count: int, seconds: float) -> list[Row]:
    def enough() -> list[Row]:
        runs = stack.rows(RUNS, agent)
        return runs if len(runs) >= count and all(run["finished_at"] for run in runs) else []

    return wait_for(enough, seconds, f"{stack.rows(RUNS, agent)}\n{stack.log('up')}")


def test_the_snoozer_schedules_itself_three_times_and_ends(examples: PrivateStack) -> None:
    """Guard: a line in the output becomes a schedule that fires. Without ScheduleLineWatcher in
    perform.py there is one run."""
    start_run(examples, "snoozer")
    for count in range(1, 4):
        runs = all_ended(examples, "snoozer", count, 20)
        assert len(runs) == count
        assert f"snoozing, {4 - count} left\n" in printed(examples, runs[-1])
        assert f"[/schedule create in 5 seconds: wake up, {3 - count} left]\nOK: scheduled #" in (
            printed(examples, runs[-1])
        )
    runs = all_ended(examples, "snoozer", 4, 20)
    assert "rested enough\n" in printed(examples, runs[-1])
    assert [run["trigger"] for run in runs] == ["manual", "schedule", "schedule", "schedule"]
    assert {run["state"] for run in runs} == {"succeeded"}


def test_the_planner_collects_the_answers_of_three_surveyors(examples: PrivateStack) -> None:
    """Guard: calls, their answers, and a waiting caller that lends its slot."""
    start_run(examples, "planner")
    (run,) = all_ended(examples, "planner", 1, 60)
    assert run["state"] == "succeeded", printed(examples, run)
    surveyors = ended(examples, "surveyor", 3)
    assert {one["parent_run_id"] for one in surveyors} == {run["id"]}
    assert {one["trigger"] for one in surveyors} == {"call"}
    for region in ("north", "south", "west"):
        assert f"the {region} has {len(region)} hills" in run["return_value"]
    assert run["return_value"] in printed(examples, run)


def test_two_agents_never_hold_the_lock_together(examples: PrivateStack) -> None:
    """Guard: the lock. If both runs held it, neither would wait."""
    hands = ("left-hand", "right-hand")
    for hand in hands:
        make_due(examples, hand)
    runs = [all_ended(examples, hand, 1, 60)[0] for hand in hands]
    texts = [printed(examples, run) for run in runs]
    assert [run["state"] for run in runs] == ["succeeded"] * 2, texts
    assert sum("waits for the table" in text for text in texts) == 1
    assert all("is done" in text for text in texts)
    held = "SELECT * FROM drover_resource_lock"
    assert examples.rows(held) == []
