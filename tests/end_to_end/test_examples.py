"""The examples of the repository, run with `manage.py up`."""

import os
import time
from pathlib import Path

from tests.faults.real_fleet import seconds_ago
from tests.parts.stack_part import PrivateStack, Row
from tests.parts.waiting import wait_for

RUNS = (
    "SELECT r.* FROM drover_run r JOIN drover_agent a ON a.id = r.agent_id "
    "WHERE a.name = ? ORDER BY r.id"
)


def ended(stack: PrivateStack, agent: str, count: int = 1) -> list[Row]:
    """The agent's first runs, once they have ended."""

    def enough() -> list[Row]:
        runs = stack.rows(RUNS + " LIMIT ?", agent, count)
        return runs if len(runs) == count and all(run["finished_at"] for run in runs) else []

    return wait_for(enough, 20, f"{agent}: {stack.rows(RUNS, agent)}\n{stack.log('up')}")


def printed(stack: PrivateStack, run: Row) -> str:
    sql = "SELECT data FROM drover_run_output WHERE run_id = ? ORDER BY seq"
    return b"".join(bytes(row["data"]) for row in stack.rows(sql, run["id"])).decode()


def start_run(stack: PrivateStack, agent: str) -> None:
    done = stack.manage("run", agent)
    assert done.returncode == 0, done.stderr


def all_ended(stack: PrivateStack, agent: str, count: int, seconds: float) -> list[Row]:
    def enough() -> list[Row]:
        runs = stack.rows(RUNS, agent)
        return runs if len(runs) >= count and all(run["finished_at"] for run in runs) else []

    return wait_for(enough, seconds, f"{stack.rows(RUNS, agent)}\n{stack.log('up')}")


def make_due(stack: PrivateStack, agent: str) -> None:
    stack.rows(
        "UPDATE drover_schedule SET next_fire_at = ? WHERE agent_id = "
        "(SELECT id FROM drover_agent WHERE name = ?)",
        seconds_ago(0),
        agent,
    )


def test_the_heartbeat_prints_its_line(examples: PrivateStack) -> None:
    """Guard: the whole path from the file to the output. Without any part of it there is no
    line."""
    (run,) = ended(examples, "heartbeat")
    assert (run["state"], run["exit_code"], run["trigger"]) == ("succeeded", 0, "schedule")
    text = printed(examples, run)
    assert text.startswith("alive at ")
    assert f"heartbeat, run {run['id']}, trigger schedule" in text
    assert run["output_bytes"] == len(text)


def test_the_minute_report_gets_the_prompt_of_its_schedule(examples: PrivateStack) -> None:
    """Guard: the prompt reaches standard input. Without it the script counts no words."""
    make_due(examples, "minute-report")
    (run,) = ended(examples, "minute-report")
    text = printed(examples, run)
    assert run["state"] == "succeeded"
    assert "asked with a prompt of 0 words" not in text
    assert "disk: " in text


def test_the_drainer_is_run_again_until_its_queue_is_empty(examples: PrivateStack) -> None:
    """Guard: exit code 42 starts the next run in the same transaction. Without it there is one
    run; without the count of reruns there is no end."""
    make_due(examples, "queue-drainer")
    runs = ended(examples, "queue-drainer", 5)
    assert [run["rerun"] for run in runs] == [0, 1, 2, 3, 4]
    assert [run["exit_code"] for run in runs] == [42, 42, 42, 42, 0]
    assert {run["state"] for run in runs} == {"succeeded"}
    assert {run["work_item_id"] for run in runs} == {runs[0]["work_item_id"]}
    assert "done with item 5 of 5\nthe queue is empty\n" in printed(examples, runs[-1])


def test_the_flaky_agent_fails_with_a_reason_and_is_retried(examples: PrivateStack) -> None:
    """Guard: the work of a failed run with retries left is queued again. Without that there is no
    second attempt; without the table of exit codes the error has no name."""
    (first,) = ended(examples, "flaky")
    assert (first["state"], first["error"]) == ("failed", "exit code 1")
    # Skips the delay of ten seconds.
    examples.rows(
        "UPDATE drover_work_item SET available_at = ? WHERE state = 'queued' AND id = ?",
        seconds_ago(0),
        first["work_item_id"],
    )
    _, second = ended(examples, "flaky", 2)
    assert (second["state"], second["error"]) == ("failed", "rate limited (exit code 12)")
    assert (second["attempt"], second["work_item_id"]) == (2, first["work_item_id"])
    assert "attempt 2: asking" in printed(examples, second)
    assert "it says: too many requests\n" in printed(examples, second)


def test_a_saved_file_takes_effect_within_two_seconds(examples: PrivateStack) -> None:
    """Guard: the directory is watched. Without the watch the change is read after 30 s."""
    skill = examples.project / "agents" / "long-haul" / "SKILL.md"
    scale = "SELECT scale, definition_error FROM drover_agent WHERE name = 'long-haul'"
    text = skill.read_text()

    skill.write_text(text.replace("timeout: 60", "timeout: 60\nscale: 3"))
    within_two_seconds(lambda: examples.rows(scale)[0]["scale"] == 3)
    save_by_rename(skill, text.replace("timeout: 60", "timeout: 60\nscale: 4"))
    within_two_seconds(lambda: examples.rows(scale)[0]["scale"] == 4)

    skill.write_text(text.replace("timeout: 60", "tiemout: 60"))
    within_two_seconds(lambda: "timeout" in examples.rows(scale)[0]["definition_error"])
    assert examples.rows(scale)[0]["scale"] == 4

    examples.write_agent(
        "newcomer", "---\ndescription: x\ncommand: [echo, hello]\nschedule: 1h\n---\n"
    )
    within_two_seconds(lambda: bool(examples.rows(RUNS, "newcomer")))
    (run,) = ended(examples, "newcomer")
    assert printed(examples, run) == "hello\n"


def test_the_snoozer_schedules_itself_three_times_and_ends(examples: PrivateStack) -> None:
    """Guard: a line in the output becomes a schedule that fires. Without ScheduleLineWatcher in
    perform.py there is one run."""
    start_run(examples, "snoozer")
    # All four at once: on a busy machine the second run starts before a look at the first one.
    runs = all_ended(examples, "snoozer", 4, 60)
    for left, run in zip((3, 2, 1), runs, strict=False):
        text = printed(examples, run)
        assert f"snoozing, {left} left\n" in text
        answer = f"[/schedule create in 5 seconds: wake up, {left - 1} left]\nOK: scheduled #"
        assert answer in text
    assert printed(examples, runs[-1]) == "rested enough\n"
    made = "SELECT * FROM drover_schedule WHERE source = 'person' AND prompt LIKE 'wake up%'"
    assert len(examples.rows(made)) == 3
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


def save_by_rename(path: Path, text: str) -> None:
    """Replace a file as editors do."""
    draft = path.with_suffix(".tmp")
    draft.write_text(text)
    os.replace(draft, path)


def within_two_seconds(what) -> None:
    saved_at = time.monotonic()
    wait_for(what, 10, "the change was not noticed")
    assert time.monotonic() - saved_at < 2
