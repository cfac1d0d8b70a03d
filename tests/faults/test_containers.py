"""Container runs whose worker or engine dies: one container per run, and none is left over."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agents_app.conf import ROOT
from agents_app.runners.containers.runner import WARN_EVERY_SECONDS
from tests.faults.conftest import NewFleet
from tests.faults.real_fleet import LEASE_SECONDS, RECONCILE_SECONDS, SLACK_SECONDS, RealFleet
from tests.parts.docker_part import IMAGE, DockerEngine
from tests.parts.stack_part import Row
from tests.parts.waiting import wait_for

# Every run holds this lock while it lives: two live runs are detected.
BODY = """
cd $DROVER_STATE_DIR; exec 9>>lock; flock -n 9 || echo overlap >>notes; echo start >>notes
i=0; until [ -e go ] && [ $i -ge 30 ]; do echo line $i; i=$((i+1)); sleep 0.05; done
echo end >>notes; echo done >&2
"""
CONTAINER_SECONDS = 3.0  # to create a container on a busy machine


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerEngine]:
    """A private engine, which the tests kill."""
    engine = DockerEngine()
    yield engine.create()
    engine.remove()


@pytest.fixture(autouse=True)
def engine_for_the_next_test(engine: DockerEngine) -> Iterator[None]:
    """A test that fails while the engine is stopped must not fail the others."""
    yield
    if engine.process is None or engine.process.poll() is not None:
        engine.start()


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


def read_notes(fleet: RealFleet, agent: str) -> list[str]:
    path = state_dir(fleet, agent) / "notes"
    return path.read_text().split() if path.exists() else []


def start_run(fleet: RealFleet, agent: str) -> Row:
    """Start a run in a container; returns its row when the container runs."""
    fleet.ensure("worker-1")
    fleet.enqueue(agent)
    wait_for(lambda: any(run["container"] for run in fleet.runs(agent)), 20, fleet.facts(agent))
    wait_for(lambda: "start" in read_notes(fleet, agent), 10)
    (run,) = fleet.runs(agent)
    return run


def let_finish(fleet: RealFleet, agent: str) -> None:
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
    """F2. Guard: adoption, and a sweep that waits for it for one lease period. Without adoption the
    run is lost; without the wait it is lost before the next worker starts; without the count of
    stored output its lines are stored twice."""
    started = start_run(fleet, "killed")
    wait_for(lambda: "line 10" in printed(fleet, started), 10)
    fleet.kill_worker()
    fleet.wait_for_exit("worker-1")
    time.sleep(2 * RECONCILE_SECONDS)
    fleet.ensure("worker-1")
    sql = "SELECT 1 FROM drover_run_event WHERE run_id = ? AND name = 'run.adopted'"
    fleet.stack.wait_for_rows(sql, started["id"])
    assert fleet.states("killed") == ["running"]
    # A draining worker lets an adopted run finish like its other runs.
    fleet.stack.processes["worker-1"].terminate()
    time.sleep(1)
    assert fleet.stack.processes["worker-1"].poll() is None
    let_finish(fleet, "killed")
    (run,) = fleet.wait_for_states("killed", "succeeded")
    assert run["worker_id"] != started["worker_id"] and run["exit_code"] == 0
    lines = printed(fleet, run).splitlines()
    assert lines == [f"line {number}" for number in range(len(lines))] and len(lines) >= 30
    assert printed(fleet, run, 2) == "done\n"
    assert run["output_bytes"] == len(printed(fleet, run)) + len("done\n")
    assert read_notes(fleet, "killed") == ["start", "end"]
    # Removed after the end was recorded.
    wait_for(lambda: containers(engine, run) == [], 10)
    assert fleet.work("killed") == ["done"]
    assert fleet.wait_for_exit("worker-1") == 0


@pytest.mark.fault("F21", "F22")
def test_the_container_of_a_frozen_worker_is_removed_before_its_lease_ends(
    fleet: RealFleet, engine: DockerEngine
) -> None:
    """F21, F22. Guard: the guard ends containers, too. While a worker is cut off from the
    database no other worker adopts its container, which would run on after the run is lost."""
    started = start_run(fleet, "frozen")
    worker = fleet.latest_worker()
    fleet.freeze(worker["pid"])
    frozen_at = time.monotonic()
    wait_for(lambda: containers(engine, started) == [], 30)
    assert time.monotonic() - frozen_at < LEASE_SECONDS + SLACK_SECONDS + CONTAINER_SECONDS
    assert fleet.wait_for_exit("worker-1") == 75
    let_finish(fleet, "frozen")
    fleet.ensure("worker-1")
    fleet.wait_for_states("frozen", "lost", "succeeded", seconds=30)
    assert read_notes(fleet, "frozen") == ["start", "start", "end"]


@pytest.mark.fault("F2")
def test_without_an_adoption_the_container_is_removed_before_the_run_is_lost(
    fleet: RealFleet, engine: DockerEngine
) -> None:
    """Guard: before a run is lost, reconcile removes its container. Without that the second
    attempt runs at the same time as the first."""
    started = start_run(fleet, "abandoned")
    os.kill(fleet.latest_worker()["pid"], signal.SIGKILL)
    fleet.wait_for_exit("worker-1")
    time.sleep(2 * RECONCILE_SECONDS)
    assert fleet.states("abandoned") == ["running"]
    seconds = LEASE_SECONDS + 5 + RECONCILE_SECONDS + SLACK_SECONDS + CONTAINER_SECONDS
    fleet.wait_for_states("abandoned", "lost", "pending", seconds=seconds)
    assert containers(engine, started) == []
    let_finish(fleet, "abandoned")
    fleet.ensure("worker-1")
    fleet.wait_for_states("abandoned", "lost", "succeeded")
    assert read_notes(fleet, "abandoned") == ["start", "start", "end"]


@pytest.mark.fault("F43")
def test_leftover_containers_of_this_installation_are_removed_and_no_others(
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
    """F40. Guard: the work item of a run without an engine is queued again. Without that it
    fails."""
    fleet.ensure("worker-1")
    engine.stop()
    fleet.enqueue("waiting")
    sql = "SELECT * FROM drover_work_item WHERE reason LIKE ? AND state = 'queued' AND attempts = 0"
    fleet.stack.wait_for_rows(sql, "docker_unavailable: %")
    time.sleep(4 * RECONCILE_SECONDS)
    assert len(fleet.runs("waiting")) <= 2  # not one run for each attempt to connect
    assert "waiting: Docker is not reachable at" in doctor(fleet)
    assert_warned_seldom(fleet)
    let_finish(fleet, "waiting")  # its directory exists when a run was prepared
    engine.start()
    back_at = time.monotonic()
    wait_for(lambda: "start" in read_notes(fleet, "waiting"), 20, fleet.facts("waiting"))
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
    start_run(fleet, "cut")
    engine.kill()
    time.sleep(1)
    engine.start()
    wait_for(lambda: len(fleet.runs("cut")) >= 2, 30, fleet.facts("cut"))
    let_finish(fleet, "cut")
    wait_for(lambda: fleet.work("cut") == ["done"], 30, fleet.facts("cut"))
    assert fleet.states("cut")[0] == "lost" and fleet.states("cut")[-1] == "succeeded"
    assert "overlap" not in read_notes(fleet, "cut")


def assert_warned_seldom(fleet: RealFleet) -> None:
    """Not once for each run that found no engine, and how often does not depend on our speed."""
    lines = fleet.stack.log("worker-1").splitlines()
    entries = [json.loads(line) for line in lines if line.startswith("{")]
    times = [
        datetime.fromisoformat(entry["timestamp"])
        for entry in entries
        if entry["event"] == "docker.unavailable"
    ]
    assert times
    pauses = [(after - before).total_seconds() for before, after in pairwise(times)]
    assert all(pause > WARN_EVERY_SECONDS - 0.1 for pause in pauses), pauses


def install_of(fleet: RealFleet) -> str:
    code = "from agents_app.runners.containers import options; print(options.installation_id())"
    argv = [sys.executable, "-c", code]
    return subprocess.check_output(argv, cwd=ROOT, env=fleet.stack.env, text=True).strip()


def doctor(fleet: RealFleet) -> str:
    argv = [sys.executable, "manage.py", "doctor"]
    done = subprocess.run(argv, cwd=ROOT, env=fleet.stack.env, capture_output=True, text=True)
    return done.stdout
