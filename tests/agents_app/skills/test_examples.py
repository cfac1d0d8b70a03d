"""The example project parses, and its scripts do what their descriptions say."""

import os
import subprocess
from pathlib import Path

import pytest

from agents_app.skills.discover import discover_project

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture
def run(tmp_path):
    state, work = tmp_path / "state", tmp_path / "work"
    state.mkdir()
    work.mkdir()

    def start(agent: str, prompt: str = "") -> subprocess.CompletedProcess[str]:
        (spec,) = (one for one in discover_project(EXAMPLES).agents if one.name == agent)
        program = spec.directory / spec.command[0]
        env = {
            "PATH": os.environ["PATH"],
            "DROVER_AGENT": agent,
            "DROVER_AGENT_DIR": str(spec.directory),
            "DROVER_ATTEMPT": "1",
            "DROVER_PROMPT_FILE": str(work / "prompt.txt"),
            "DROVER_RUN_ID": "7",
            "DROVER_STATE_DIR": str(state),
            "DROVER_TRIGGER": "schedule",
        }
        return subprocess.run(
            [program, *spec.command[1:]],
            input=prompt,
            env=env,
            cwd=work,
            capture_output=True,
            text=True,
            timeout=60,
        )

    start.state = state  # type: ignore[attr-defined]
    return start


def test_the_examples_parse_without_an_error():
    found = discover_project(EXAMPLES)
    assert [str(error) for error in found.errors] == []
    assert [agent.name for agent in found.agents] == [
        "flaky",
        "heartbeat",
        "left-hand",
        "long-haul",
        "minute-report",
        "planner",
        "queue-drainer",
        "right-hand",
        "snoozer",
        "surveyor",
    ]


def test_every_example_has_a_schedule_a_description_and_an_executable_program():
    for agent in discover_project(EXAMPLES).agents:
        program = agent.directory / agent.command[0]
        assert agent.schedules or agent.name == "surveyor", agent.name  # others call it
        assert agent.description, agent.name
        if agent.command[0] == "sh":  # what several share, and find by a variable
            program = EXAMPLES / "shared" / "take.sh"
            assert "$DROVER_SHARED_DIR/take.sh" in agent.command[-1], agent.name
        assert os.access(program, os.X_OK), program
        assert program.read_text().startswith("#!/bin/sh\n"), program


def test_the_heartbeat_prints_one_line(run):
    done = run("heartbeat")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("alive at ")
    assert done.stdout.count("\n") == 1


def test_the_minute_report_reads_its_prompt_and_reports(run):
    done = run("minute-report", "Report on this machine.")
    assert (done.returncode, done.stderr) == (0, "")
    assert "a prompt of 4 words" in done.stdout
    assert "disk: " in done.stdout


def test_the_queue_drainer_asks_for_reruns_until_its_queue_is_empty(run):
    (spec,) = (
        agent for agent in discover_project(EXAMPLES).agents if agent.name == "queue-drainer"
    )
    codes = [run("queue-drainer").returncode for _ in range(5)]
    assert codes == [42, 42, 42, 42, 0]
    assert codes.count(42) < spec.max_reruns
    assert "nothing to do" in run("queue-drainer").stdout


def test_the_queue_drainer_fills_its_queue_again_after_a_rest(run):
    (run.state / "queue").touch()
    (run.state / "emptied_at").write_text("1000\n")
    done = run("queue-drainer")
    assert done.returncode == 42
    assert "filled the queue" in done.stdout


def test_flaky_fails_three_times_out_of_four(run):
    assert [run("flaky").returncode for _ in range(5)] == [1, 12, 14, 0, 1]


def test_the_snoozer_asks_for_less_each_time_and_then_for_nothing(run):
    assert run("snoozer").stdout.endswith("/schedule in 5 seconds: wake up, 2 left\n")
    asked = "Some instructions\n<prompt>\nwake up, 1 left\n</prompt>\n"
    assert run("snoozer", asked).stdout.endswith("/schedule in 5 seconds: wake up, 0 left\n")
    assert "/schedule" not in run("snoozer", "wake up, 0 left").stdout


def test_the_rarely_needed_examples_do_not_run_by_themselves(run):
    """These examples are started by hand."""
    quiet = {"planner", "surveyor", "left-hand", "right-hand", "snoozer"}
    for agent in discover_project(EXAMPLES).agents:
        if agent.name in quiet:
            assert all(one.expression.endswith("* * 1") for one in agent.schedules)
