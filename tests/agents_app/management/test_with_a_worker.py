"""The commands as people use them: from a shell, with a real Redis, worker and programs."""

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from agents_app.conf import ROOT
from tests.parts.processes import all_gone
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

pytestmark = pytest.mark.slow

TALKER = "---\ncommand: [sh, -c, 'cat; echo out; echo err >&2; exit 13']\n---\nSay it.\n"
SLEEPER = "---\ncommand: [sh, -c, 'echo begun; sleep 600 & sleep 600']\nscale: 2\n---\nSleep.\n"
COUNTER = (
    "---\ncommand: [sh, -c, 'for i in 1 2 3; do echo tick $i; sleep 0.3; done']\n---\nCount.\n"
)


@pytest.fixture
def stack(new_stack: Callable[..., PrivateStack]) -> PrivateStack:
    stack = new_stack(TZ="Europe/Berlin")
    for name, skill in (("talker", TALKER), ("sleeper", SLEEPER), ("counter", COUNTER)):
        stack.write_agent(name, skill)
    done = stack.manage("discover", "--sync")
    assert done.returncode == 0, done.stderr
    stack.start("redis")
    stack.start("worker-1")
    return stack


def spawn(stack: PrivateStack, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=stack.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def running(stack: PrivateStack) -> list[int]:
    return [
        row["pid"]
        for row in stack.rows("SELECT pid FROM drover_run WHERE state = 'running'")
        if row["pid"] is not None
    ]


def test_waiting_for_a_run_shows_its_output_and_exits_with_its_code(stack: PrivateStack):
    done = stack.manage("run", "talker", "--prompt", "Grüß [bold]dich", "--wait")
    assert done.returncode == 13
    assert "Say it." in done.stdout and "Grüß [bold]dich" in done.stdout
    assert done.stdout.endswith("out\nerr\n")
    assert done.stderr.endswith("failed: invalid config (exit code 13)\n")
    assert "Traceback" not in done.stderr
    waited = stack.manage("rerun", "1", "--wait", "--json")
    assert waited.returncode == 13
    assert '"exit_code": 13' in waited.stdout


def test_following_shows_a_run_while_it_goes_on_and_ends_with_it(stack: PrivateStack):
    assert stack.manage_json("run", "counter")["state"] == "admitted"
    followed = stack.manage("logs", "counter", "-f", "--times")
    assert followed.returncode == 0
    lines = followed.stdout.splitlines()
    assert [line.split("  ")[1] for line in lines] == ["tick 1", "tick 2", "tick 3"]
    # The zone of the shell, although Django sets its own for the process.
    assert all(" CET" in line or " CEST" in line for line in lines)
    assert followed.stderr == "run 1 succeeded (exit code 0)\n"
    assert stack.manage_json("stat")["agents"][0]["last_run"]["state"] == "succeeded"


def test_stopping_an_agent_ends_everything_its_runs_started(stack: PrivateStack):
    for _ in range(2):
        stack.manage("run", "sleeper")
    wait_for(lambda: len(running(stack)) == 2, 10, lambda: stack.log("worker-1"))
    pids = running(stack)
    done = stack.manage("stop", "sleeper", "--timeout", "10")
    assert (done.returncode, done.stdout) == (0, "sleeper: stopping 2 runs\n")
    wait_for(lambda: all_gone(pids), 2)
    states = {row["state"] for row in stack.rows("SELECT state FROM drover_run")}
    assert states == {"stopped"}


def test_a_shutdown_waits_for_what_runs_and_fails_at_its_limit(stack: PrivateStack):
    for _ in range(3):
        stack.manage("run", "sleeper")
    wait_for(lambda: len(running(stack)) == 2, 10, lambda: stack.log("worker-1"))
    refused = stack.manage("stop", "--timeout", "1")
    assert refused.returncode == 1
    assert "after 1 s 2 runs are still running" in refused.stderr
    assert stack.manage_json("stat")["scheduler"]["state"] == "stopping"
    stack.manage("stop", "sleeper", "--timeout", "10")
    assert stack.manage_json("stop")["state"] == "stopped"
    rows = stack.rows("SELECT state FROM drover_work_item ORDER BY id")
    assert [row["state"] for row in rows] == ["failed", "failed", "cleared"]


def test_ctrl_c_ends_the_watching_and_not_the_run(stack: PrivateStack):
    for arguments in (("run", "sleeper", "--wait"), ("logs", "sleeper", "-f")):
        process = spawn(stack, *arguments)
        assert process.stdout is not None
        wait_for(lambda process=process: "begun" in process.stdout.readline(), 10)  # type: ignore[misc]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
        assert process.returncode == 130
        assert "Traceback" not in err
    assert len(running(stack)) == 1
    stack.manage("stop", "sleeper", "--timeout", "10")


def test_a_reader_that_goes_away_is_no_error(stack: PrivateStack):
    stack.write_agent("loud", "---\ncommand: [sh, -c, 'seq 200000']\n---\nx\n")
    stack.manage("discover", "--sync")
    stack.manage("run", "loud", "--wait")
    process = spawn(stack, "logs", "loud")
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == "1\n"
    process.stdout.close()
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    process.wait(10)


def test_an_error_is_one_line_and_exit_code_1(stack: PrivateStack):
    done = stack.manage("run", "taker")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "drover: there is no agent 'taker'; did you mean 'talker'? "
        "(manage.py stat lists the agents)\n"
    )


def test_the_doctor_knows_a_dead_worker_and_a_fresh_installation(stack: PrivateStack):
    found = stack.manage("doctor")
    assert "1 alive" in found.stdout
    stack.stop("worker-1")
    found = stack.manage("doctor", "--invariants")
    assert found.returncode == 1
    assert "none is alive" in found.stdout and "invariants" in found.stdout


def test_without_tables_the_doctor_says_what_to_do(tmp_path):
    with PrivateStack(tmp_path / "fresh") as fresh:
        done = fresh.manage("doctor")
        assert done.returncode == 1
        assert "manage.py migrate" in done.stdout
        # What needs tables is not even tried.
        assert "schedules" not in done.stdout
        stat = fresh.manage("stat")
        assert (stat.returncode, stat.stdout) == (1, "")
        assert stat.stderr.startswith("drover: the database cannot be used: no such table")
        assert stat.stderr.count("\n") == 1
