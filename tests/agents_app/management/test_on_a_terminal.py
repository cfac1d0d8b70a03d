"""Commands as people see them: in colour, live, on narrow screens; and what a pipe gets instead."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents_app.conf import ROOT
from tests.agents_app.management.on_terminal import on_terminal
from tests.parts.stack_part import PrivateStack

pytestmark = pytest.mark.slow

SKILL = "---\ndescription: {0}\ncommand: [sh, -c, 'echo hello from {0}']\n---\nSay hello.\n"


@pytest.fixture(scope="module")
def stack(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: Callable[[Path], str]
) -> Iterator[PrivateStack]:
    """Two agents in the database, two runs that have printed something, and no processes."""
    directory = tmp_path_factory.mktemp("terminal")
    with PrivateStack(directory, migrated_database(directory / "data")) as stack:
        for name in ("greeter", "reporter"):
            stack.write_agent(name, SKILL.format(name))
        assert stack.manage("discover", "--sync").returncode == 0
        made = stack.manage("shell", "-c", RUNS)
        assert made.returncode == 0, made.stderr
        yield stack


RUNS = """
from agents_app.models import Agent
from tests.agents_app.management.test_logs import OUT, ERR, printed
from tests.agents_app.fleet import Fleet
for agent in Agent.objects.select_related("tenant").order_by("name"):
    fleet = Fleet(agent.tenant)
    job = fleet.start(fleet.enqueue(agent), worker=fleet.worker(name=f"of-{agent.name}"))
    said = f"hello from {agent.name}".encode()
    printed(job.run_id, (OUT, said[:7]), (ERR, b"careful"), (OUT, said[7:]), (ERR, b"!"))
    fleet.finish(job, "failed" if agent.name == "reporter" else "succeeded")
"""


def test_the_fleet_is_a_table_in_colours(stack: PrivateStack):
    with on_terminal(stack, "stat") as terminal:
        assert terminal.wait() == 0
        assert "─" in terminal.text and "2 failed" in terminal.text
        assert "\x1b[31mfailed" in terminal.raw and "\x1b[32msucceeded" in terminal.raw


@pytest.mark.parametrize("plain", [("--no-color", ""), ("--verbosity=1", "1")])
def test_colours_can_be_switched_off(stack: PrivateStack, plain: tuple[str, str]):
    option, no_color = plain
    with on_terminal(stack, "stat", option, NO_COLOR=no_color) as terminal:
        assert terminal.wait() == 0
        assert "failed" in terminal.text
        assert "\x1b[3" not in terminal.raw


def test_a_table_that_does_not_fit_becomes_a_record_a_row(stack: PrivateStack):
    with on_terminal(stack, "stat", columns=40) as terminal:
        assert terminal.wait() == 0
        assert "agent      greeter" in terminal.lines
        assert "agent      reporter" in terminal.lines
        assert "─" not in terminal.text


def test_watching_goes_on_until_ctrl_c_and_leaves_the_screen_as_it_was(stack: PrivateStack):
    with on_terminal(stack, "stat", "-w", "--every", "0.2") as terminal:
        terminal.wait_for("reporter")
        looked = terminal.raw.count("stop with Ctrl-C")
        assert stack.manage("pause", "greeter", "--note", "seen live").returncode == 0
        terminal.wait_for("seen live")
        assert terminal.interrupt() == 0
        assert terminal.raw.count("stop with Ctrl-C") > looked
        assert "Traceback" not in terminal.text
        # Into a screen of its own, and out of it; the cursor is seen again.
        assert terminal.raw.count("\x1b[?1049h") == terminal.raw.count("\x1b[?1049l") == 1
        assert terminal.raw.rindex("\x1b[?25h") > terminal.raw.rindex("\x1b[?25l")


@pytest.mark.parametrize("option", ["--json", "--verbosity=1"])
def test_watching_through_a_pipe_gives_one_picture_after_the_other(
    stack: PrivateStack, option: str
):
    process = subprocess.Popen(
        [sys.executable, "manage.py", "stat", "-w", "--every", "0.2", option],
        cwd=ROOT,
        env=stack.env,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        seen = [process.stdout.readline() for _ in range(24)]
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.stdout.close()
    assert "\x1b" not in "".join(seen)
    if option == "--json":
        assert {len(json.loads(line)["agents"]) for line in seen} == {2}
    else:
        assert sum("stop with Ctrl-C" in line for line in seen) >= 2


def test_several_agents_are_told_apart_by_name_and_colour(stack: PrivateStack):
    with on_terminal(stack, "logs", "greeter", "reporter") as terminal:
        assert terminal.wait() == 0
        # Whole lines, though their pieces were printed in turns.
        assert "greeter  1 | hello from greeter" in terminal.lines
        assert "reporter 2 | careful!" in terminal.lines
        assert "\x1b[36mgreeter  1 |\x1b[0m" in terminal.raw
        assert "\x1b[32mreporter 2 |\x1b[0m" in terminal.raw
        assert "\x1b[31mcareful!\x1b[0m" in terminal.raw


def test_a_pipe_gets_the_names_without_colours(stack: PrivateStack):
    said = stack.manage("logs", "--all")
    assert said.returncode == 0
    assert "greeter  1 | hello from greeter\n" in said.stdout
    assert "\x1b" not in said.stdout
    assert said.stderr.splitlines() == ["greeter: run 1 succeeded", "reporter: run 2 failed"]


def test_a_progress_bar_is_shown_on_a_terminal_only(stack: PrivateStack):
    with on_terminal(stack, "rerun", "1", "2", "--json") as terminal:
        assert terminal.wait() == 0
        assert "queuing" in terminal.text and "2/2" in terminal.text
    said = stack.manage("rerun", "1", "2", "--json")
    assert [one["agent"] for one in json.loads(said.stdout)["asked"]] == ["greeter", "reporter"]
    assert "2/2" not in said.stderr


def test_a_closed_pipe_ends_the_command_without_a_traceback(stack: PrivateStack):
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "manage.py", "stat", "-w", "--every", "0.2"],
        cwd=ROOT,
        env=stack.env,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(write)
    os.read(read, 10)
    os.close(read)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (1, "")
