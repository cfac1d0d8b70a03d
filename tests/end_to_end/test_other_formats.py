"""Projects of herdctl, Action Llama and Metateam, unchanged, in turn on one running stack."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agents_app.formats.written import PROJECTS, write
from tests.end_to_end.test_examples import ended, printed, start_run
from tests.faults.real_fleet import QUICK, seconds_ago
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

pytestmark = pytest.mark.slow

# Stands for the program of a model: it shows what it was given.
CLAUDE = """#!/bin/sh
echo "claude $*"
cat
echo '{"type": "result", "subtype": "success", "result": "written"}'
"""
CODEX = """#!/bin/sh
echo "codex $*"
cat
"""


@pytest.fixture(scope="module")
def stack(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: Callable[[Path], str]
) -> Iterator[PrivateStack]:
    directory = tmp_path_factory.mktemp("formats")
    programs = write(directory / "programs", {"claude": CLAUDE, "codex": CODEX})
    for program in programs.iterdir():
        program.chmod(0o755)
    env = {**QUICK, "PATH": f"{programs}:{os.environ['PATH']}"}
    stack = PrivateStack(directory, migrated_database(directory / "data"), **env)
    put_project(stack, "newsroom")
    with stack:
        up = stack.up()
        yield stack
        up.send_signal(signal.SIGINT)


def put_project(stack: PrivateStack, name: str) -> None:
    """Replace the files of the project."""
    for path in stack.project.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(PROJECTS / name, stack.project, dirs_exist_ok=True)


def wait_for_agents(stack: PrivateStack, *names: str) -> None:
    sql = "SELECT name FROM drover_agent WHERE removed_at IS NULL"
    wait_for(
        lambda: {row["name"] for row in stack.rows(sql)} == set(names),
        5,
        lambda: f"{stack.rows(sql)}\n{stack.log('up')}",
    )


def assert_without_traceback(stack: PrivateStack, *arguments: str) -> str:
    done = stack.manage(*arguments)
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    return said


def test_a_project_of_herdctl_runs_with_its_schedules_and_hooks(stack: PrivateStack) -> None:
    """Guard: the whole path from agents/reporter.yaml to the output of a hook."""
    described = stack.manage_json("discover")
    assert (described["format"], described["errors"]) == ("herdctl", [])
    assert len(described["not_honoured"]) == 11
    # An interval fires when it has never fired, as in herdctl.
    (run,) = ended(stack, "reporter")
    text = printed(stack, run)
    assert (run["state"], run["trigger"]) == ("succeeded", "schedule"), text
    assert "claude -p --output-format stream-json --verbose --model claude-sonnet-4-5" in text
    assert "You write about Leipzig in German." in text
    assert "Look for something new." in text
    assert "[hooks.after_run: publish]\npublished by reporter\n[hooks.after_run: done]\n" in text
    assert "slack_bot_token" in assert_without_traceback(stack, "doctor")


def test_a_project_of_action_llama_runs(stack: PrivateStack) -> None:
    put_project(stack, "helpdesk")
    wait_for_agents(stack, "coder", "oracle", "remote", "triage")
    described = stack.manage_json("discover")
    assert (described["format"], described["errors"]) == ("action-llama", [])
    start_run(stack, "coder")
    (run,) = ended(stack, "coder")
    text = printed(stack, run)
    assert run["state"] == "succeeded", text
    assert "codex exec" in text and "gpt-5-codex" in text
    assert "Fix one bug." in text
    assert "git_ssh:work" in assert_without_traceback(stack, "doctor")


def test_the_rules_of_a_crew_start_agents_and_commands(stack: PrivateStack) -> None:
    put_project(stack, "observatory")
    wait_for_agents(stack, "archive", "dome", "telescope")
    stack.wait_for_rows("SELECT count(*) FROM drover_rule HAVING count(*) = 30")
    # Both wait for a full interval otherwise.
    stack.rows("UPDATE drover_rule SET next_due_at = ? WHERE line IN (3, 5)", seconds_ago(1))
    (run,) = ended(stack, "dome")
    assert (run["state"], run["trigger"]) == ("succeeded", "rule")
    assert "Opens and closes the dome." in printed(stack, run)
    sql = "SELECT status FROM drover_rule WHERE line = 5 AND status = 'ok'"
    stack.wait_for_rows(sql)
    assert stack.manage_json("discover")["rules"] == ".crew/scheduler.rules"
    assert_without_traceback(stack, "doctor")
