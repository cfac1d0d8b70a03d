"""The commands as people use them: from a shell, with a real Redis, worker and programs."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from agents_app.conf import ROOT
from tests.faults.real_fleet import RealFleet
from tests.parts.fixtures import NewStack
from tests.parts.processes import all_gone, is_gone
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

TALKER = "---\ncommand: [sh, -c, 'cat; echo out; echo err >&2; exit 13']\n---\nSay it.\n"
LOUD = "---\ncommand: [sh, -c, 'seq 200000']\n---\nx\n"
SLEEPER = "---\ncommand: [sh, -c, 'echo begun; sleep 600 & sleep 600']\nscale: 2\n---\nSleep.\n"
COUNTER = (
    "---\ncommand: [sh, -c, 'for i in 1 2 3; do echo tick $i; sleep 0.3; done']\n---\nCount.\n"
)


# One agent for each test: the tests share an installation.
AGENTS = {
    "talker": TALKER,
    "counter": COUNTER,
    "loud": LOUD,
    **dict.fromkeys(("stopped", "shut-down", "watched"), SLEEPER),
}


@pytest.fixture(scope="module")
def installation(new_shared_stack: NewStack) -> Iterator[RealFleet]:
    stack = new_shared_stack(TZ="Europe/Berlin")
    for name, skill in AGENTS.items():
        stack.write_agent(name, skill)
    fleet = RealFleet(stack)
    fleet.sync()
    yield fleet
    fleet.close()


@pytest.fixture
def fleet(installation: RealFleet) -> RealFleet:
    """With a worker and a running scheduler, also after a test that stopped them."""
    installation.ensure("redis", "worker-1")
    installation.stack.rows("UPDATE drover_scheduler SET state = 'running'")
    return installation


@pytest.fixture
def stack(fleet: RealFleet) -> PrivateStack:
    return fleet.stack


def spawn(stack: PrivateStack, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=stack.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def running(fleet: RealFleet, agent: str) -> list[int]:
    runs = fleet.runs(agent)
    return [run["pid"] for run in runs if run["state"] == "running" and run["pid"] is not None]


def test_waiting_for_a_run_shows_its_output_and_exits_with_its_code(fleet: RealFleet):
    stack = fleet.stack
    done = stack.manage("run", "talker", "--prompt", "Grüß [bold]dich", "--wait")
    assert done.returncode == 13
    assert "Say it." in done.stdout and "Grüß [bold]dich" in done.stdout
    assert done.stdout.endswith("out\nerr\n")
    assert done.stderr.endswith("failed: invalid config (exit code 13)\n")
    assert "Traceback" not in done.stderr
    (run,) = fleet.runs("talker")
    waited = stack.manage("rerun", str(run["id"]), "--wait", "--json")
    assert waited.returncode == 13
    assert '"exit_code": 13' in waited.stdout


def test_following_shows_a_run_while_it_goes_on_and_ends_with_it(fleet: RealFleet):
    stack = fleet.stack
    started = stack.manage_json("run", "counter")
    assert started["state"] == "admitted"
    followed = stack.manage("logs", str(started["run_id"]), "-f", "--times")
    assert followed.returncode == 0
    lines = followed.stdout.splitlines()
    assert [line.split("  ")[1] for line in lines] == ["tick 1", "tick 2", "tick 3"]
    # The zone of the shell, although Django sets its own for the process.
    assert all(" CET" in line or " CEST" in line for line in lines)
    (run,) = fleet.runs("counter")
    assert followed.stderr == f"run {run['id']} succeeded (exit code 0)\n"
    assert run["state"] == "succeeded"


def test_stopping_an_agent_ends_everything_its_runs_started(fleet: RealFleet):
    fleet.enqueue("stopped", 2)
    wait_for(lambda: len(running(fleet, "stopped")) == 2, 10, lambda: fleet.facts("stopped"))
    pids = running(fleet, "stopped")
    done = fleet.stack.manage("stop", "stopped", "--timeout", "10")
    assert (done.returncode, done.stdout) == (0, "stopped: stopping 2 runs\n")
    wait_for(lambda: all_gone(pids), 2)
    assert set(fleet.states("stopped")) == {"stopped"}


def test_a_shutdown_waits_for_what_runs_and_fails_at_its_limit(fleet: RealFleet):
    stack = fleet.stack
    fleet.enqueue("shut-down", 3)
    wait_for(lambda: len(running(fleet, "shut-down")) == 2, 10, lambda: fleet.facts("shut-down"))
    refused = stack.manage("stop", "--timeout", "1")
    assert refused.returncode == 1
    assert "after 1 s 2 runs are still running" in refused.stderr
    assert stack.rows("SELECT state FROM drover_scheduler") == [{"state": "draining"}]
    stack.manage("stop", "shut-down", "--timeout", "10")
    assert stack.manage_json("stop")["state"] == "stopped"
    assert fleet.work("shut-down") == ["failed", "failed", "cleared"]


def test_ctrl_c_ends_the_watching_and_not_the_run(fleet: RealFleet):
    for arguments, code in ((("run", "watched", "--wait"), 130), (("logs", "watched", "-f"), 0)):
        process = spawn(fleet.stack, *arguments)
        assert process.stdout is not None
        wait_for(lambda process=process: "begun" in process.stdout.readline(), 10)  # type: ignore[misc]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
        assert process.returncode == code
        assert "Traceback" not in err
    (pid,) = running(fleet, "watched")
    # Ends the run, which would count in the shutdown of another test.
    fleet.stack.manage("stop", "watched", "--timeout", "10")
    wait_for(lambda: is_gone(pid), 5)


def test_a_reader_that_goes_away_is_no_error(fleet: RealFleet):
    fleet.enqueue("loud")
    fleet.wait_for_states("loud", "succeeded")
    process = spawn(fleet.stack, "logs", "loud")
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
        assert stat.stderr == (
            "drover: the database has no tables yet: start Drover once (manage.py up)\n"
        )
        assert stat.stderr.count("\n") == 1
