"""Container runs whose worker or engine dies: never two of one run, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_app.conf import ROOT
from tests.faults.conftest import NewFleet
from tests.faults.real_fleet import LEASE_SECONDS, RECONCILE_SECONDS, SLACK_SECONDS, RealFleet
from tests.parts.docker_part import IMAGE, DockerEngine
from tests.parts.stack_part import Row
from tests.parts.waiting import wait_for

# Each copy holds the lock as long as it lives: two live ones meet here.
BODY = """
cd $DROVER_STATE_DIR; exec 9>>lock; flock -n 9 || echo overlap >>notes; echo start >>notes
i=0; until [ -e go ] && [ $i -ge 30 ]; do echo line $i; i=$((i+1)); sleep 0.05; done
echo end >>notes; echo done >&2
"""
CONTAINER_SECONDS = 3.0  # to make one on a busy machine


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerEngine]:
    """One of this module's own, to be hurt."""
    engine = DockerEngine()
    yield engine.create()
    engine.remove()


@pytest.fixture(scope="module")
def fleet(new_fleet: NewFleet, engine: DockerEngine) -> RealFleet:
    fleet = new_fleet(DOCKER_HOST=engine.url)
    runtime = {"type": "container", "image": IMAGE, "memory": "64m"}
    for name in ("killed", "frozen", "abandoned", "waiting", "cut"):
        fields: dict[str, Any] = {"description": "a test's", "command": ["sh", "-c", BODY]}
        fields |= {"runtime": runtime, "on_lost": "retry"}
        lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in fields.items())
        fleet.stack.write_agent(name, f"---\n{lines}---\n")
    fleet.sync()
    fleet.ensure("redis", "beat")
    return fleet


def state_dir(fleet: RealFleet, agent: str) -> Path:
    (row,) = fleet.stack.rows("SELECT id FROM drover_agent WHERE name = ?", agent)
    return fleet.stack.data / "state" / str(row["id"])


def noted(fleet: RealFleet, agent: str) -> list[str]:
    path = state_dir(fleet, agent) / "notes"
    return path.read_text().split() if path.exists() else []


def begin(fleet: RealFleet, agent: str) -> Row:
    """A run whose container could go on alone."""
    fleet.ensure("worker-1")
    fleet.ask(agent)
    wait_for(lambda: any(run["container"] for run in fleet.runs(agent)), 20, fleet.facts(agent))
    wait_for(lambda: "start" in noted(fleet, agent), 10)
    (run,) = fleet.runs(agent)
    return run


def let_go(fleet: RealFleet, agent: str) -> None:
    (state_dir(fleet, agent) / "go").touch()


def printed(fleet: RealFleet, run: Row, stream: int = 1) -> str:
    sql = "SELECT data FROM drover_run_output WHERE run_id = ? AND stream = ? ORDER BY seq"
    return b"".join(bytes(row["data"]) for row in fleet.stack.rows(sql, run["id"], stream)).decode()


def containers(engine: DockerEngine, run: Row) -> list[Any]:
    label = f"drover.trace={run['trace_id']}"
    return list(engine.client().containers(all=True, filters={"label": label}))


@pytest.mark.fault("F2")
def test_the_next_worker_adopts_the_container_and_its_output_is_complete(
    fleet: RealFleet, engine: DockerEngine
) -> None:
    """F2. Guard: adoption, and a sweep that gives it a lease's time. Without the first the run is
    lost; without the second it is lost before a worker is back; without the count of what is
    stored its lines come twice."""
    begun = begin(fleet, "killed")
    wait_for(lambda: "line 10" in printed(fleet, begun), 10)
    fleet.kill_worker()
    fleet.wait_for_exit("worker-1")
    time.sleep(2 * RECONCILE_SECONDS)
    fleet.ensure("worker-1")
    sql = "SELECT 1 FROM drover_run_event WHERE run_id = ? AND name = 'run.adopted'"
    fleet.stack.wait_for_rows(sql, begun["id"])
    assert fleet.states("killed") == ["running"]
    # A worker that must stop lets it finish, as if it were its own.
    fleet.stack.processes["worker-1"].terminate()
    time.sleep(1)
    assert fleet.stack.processes["worker-1"].poll() is None
    let_go(fleet, "killed")
    (run,) = fleet.wait_for_states("killed", "succeeded")
    assert run["worker_id"] != begun["worker_id"] and run["exit_code"] == 0
    lines = printed(fleet, run).splitlines()
    assert lines == [f"line {number}" for number in range(len(lines))] and len(lines) >= 30
    assert printed(fleet, run, 2) == "done\n"
    assert run["output_bytes"] == len(printed(fleet, run)) + len("done\n")
    assert noted(fleet, "killed") == ["start", "end"]
    assert containers(engine, run) == []
    assert fleet.work("killed") == ["done"]
    assert fleet.wait_for_exit("worker-1") == 0


@pytest.mark.fault("F21")
def test_the_container_of_a_frozen_worker_is_gone_before_its_lease_is_over(
    fleet: RealFleet, engine: DockerEngine
) -> None:
    """F21, F22. Guard: the guard ends containers, too. A worker that is cut off from the database
    has no next one: its container would go on when everybody else holds the run for lost."""
    begun = begin(fleet, "frozen")
    worker = fleet.living_worker()
    os.kill(worker["pid"], signal.SIGSTOP)
    frozen_at = time.monotonic()
    wait_for(lambda: containers(engine, begun) == [], 30)
    assert time.monotonic() - frozen_at < LEASE_SECONDS + SLACK_SECONDS + CONTAINER_SECONDS
    assert fleet.wait_for_exit("worker-1") == 75
    let_go(fleet, "frozen")
    fleet.ensure("worker-1")
    fleet.wait_for_states("frozen", "lost", "succeeded", seconds=30)
    assert noted(fleet, "frozen") == ["start", "start", "end"]


@pytest.mark.fault("F2")
def test_without_an_adoption_the_container_is_removed_before_the_run_is_lost(
    fleet: RealFleet, engine: DockerEngine
) -> None:
    """Guard: before a run is lost, reconcile removes its container. Without that the second
    attempt meets the first one."""
    begun = begin(fleet, "abandoned")
    os.kill(fleet.living_worker()["pid"], signal.SIGKILL)
    fleet.wait_for_exit("worker-1")
    time.sleep(2 * RECONCILE_SECONDS)
    assert fleet.states("abandoned") == ["running"]
    seconds = LEASE_SECONDS + 5 + RECONCILE_SECONDS + SLACK_SECONDS + CONTAINER_SECONDS
    fleet.wait_for_states("abandoned", "lost", "pending", seconds=seconds)
    assert containers(engine, begun) == []
    let_go(fleet, "abandoned")
    fleet.ensure("worker-1")
    fleet.wait_for_states("abandoned", "lost", "succeeded")
    assert noted(fleet, "abandoned") == ["start", "start", "end"]


@pytest.mark.fault("F43")
def test_a_container_that_was_left_over_is_removed_and_others_are_left_alone(
    fleet: RealFleet, engine: DockerEngine
) -> None:
    """F43. Guard: the workers' sweep, by this installation's label alone."""
    fleet.ensure("worker-1")
    client = engine.client()
    install = install_of(fleet)

    def leave(install: str) -> str:
        labels = {"drover.install": install, "drover.run": "999999", "drover.trace": "x"}
        config = client.create_host_config(network_mode="none")
        made = client.create_container(IMAGE, ["sleep", "300"], labels=labels, host_config=config)
        client.start(made)
        return str(made["Id"])

    ours, others = leave(install), leave("another")
    there = lambda: {each["Id"] for each in client.containers(all=True)}  # noqa: E731
    wait_for(lambda: ours not in there(), 10, "still there")
    assert others in there()
    client.remove_container(others, force=True)


@pytest.mark.fault("F40")
def test_work_waits_without_losing_an_attempt_while_the_engine_is_down(
    fleet: RealFleet, engine: DockerEngine
) -> None:
    """F40. Guard: a run that found no engine is given back. Without that it fails."""
    fleet.ensure("worker-1")
    engine.stop()
    fleet.ask("waiting")
    sql = "SELECT * FROM drover_work_item WHERE reason LIKE ? AND state = 'queued' AND attempts = 0"
    fleet.stack.wait_for_rows(sql, "docker_unavailable: %")
    time.sleep(4 * RECONCILE_SECONDS)
    assert len(fleet.runs("waiting")) <= 2  # not one for each time it was tried
    assert "waiting: Docker is not reachable at" in doctor(fleet)
    assert 1 <= fleet.stack.log("worker-1").count("docker.unavailable") <= 2
    let_go(fleet, "waiting")  # its directory is there as soon as a run was prepared
    engine.start()
    back_at = time.monotonic()
    wait_for(lambda: "start" in noted(fleet, "waiting"), 20, fleet.facts("waiting"))
    took = time.monotonic() - back_at
    assert took < RECONCILE_SECONDS + 1 + SLACK_SECONDS + CONTAINER_SECONDS
    wait_for(lambda: fleet.work("waiting") == ["done"], 20, fleet.facts("waiting"))
    last = fleet.runs("waiting")[-1]
    assert (last["state"], last["attempt"]) == ("succeeded", 1)


@pytest.mark.fault("F41")
def test_an_engine_killed_during_a_run_causes_no_second_run(
    fleet: RealFleet, engine: DockerEngine
) -> None:
    """F41."""
    begin(fleet, "cut")
    engine.kill()
    time.sleep(1)
    engine.start()
    wait_for(lambda: len(fleet.runs("cut")) >= 2, 30, fleet.facts("cut"))
    let_go(fleet, "cut")
    wait_for(lambda: fleet.work("cut") == ["done"], 30, fleet.facts("cut"))
    assert fleet.states("cut")[0] == "lost" and fleet.states("cut")[-1] == "succeeded"
    assert "overlap" not in noted(fleet, "cut")


def install_of(fleet: RealFleet) -> str:
    code = "from agents_app.runners.containers import options; print(options.installation_id())"
    argv = [sys.executable, "-c", code]
    return subprocess.check_output(argv, cwd=ROOT, env=fleet.stack.env, text=True).strip()


def doctor(fleet: RealFleet) -> str:
    argv = [sys.executable, "manage.py", "doctor"]
    done = subprocess.run(argv, cwd=ROOT, env=fleet.stack.env, capture_output=True, text=True)
    return done.stdout
