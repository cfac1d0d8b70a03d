"""A worker executes several runs in a row; stops, losses and deletions meanwhile."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents_app.conf import CONF
from agents_app.database.transactions import in_transaction
from agents_app.models import Agent, Run, RunOutput, Tenant, WorkItem
from agents_app.runners.sandbox_threads import SPARE_THREADS
from agents_app.runs import lifecycle
from agents_app.worker import execute
from agents_app.worker.execute import Host
from tests.agents_app.executing import Executing, do, printed, shell
from tests.agents_app.fleet import NOON, Fleet, at, event_names, live_run, run_states, work_states
from tests.parts.waiting import wait_for

# --- going on -------------------------------------------------------------------------------


def test_one_thread_executes_runs_while_its_slot_has_work(fleet: Fleet, host: Host):
    agent = fleet.agent()
    first, *_ = (fleet.enqueue(agent) for _ in range(4))
    assert execute.execute(live_run(first).pk, host) == 4
    assert work_states(agent) == ["done"] * 4
    assert event_names(agent.runs.latest("id").pk) == [
        "run.admitted",
        "run.started",
        "run.succeeded",
    ]


def test_after_some_runs_in_a_row_the_slot_goes_back_through_the_queue(
    fleet: Fleet, host: Host, monkeypatch
):
    monkeypatch.setattr(execute, "MAX_RUNS_IN_A_ROW", 3)
    agent = fleet.agent()
    first, *_ = (fleet.enqueue(agent) for _ in range(5))
    assert execute.execute(live_run(first).pk, host) == 3
    assert run_states(agent) == ["succeeded"] * 3 + ["pending"]


def test_after_some_time_in_a_row_the_slot_goes_back_through_the_queue(
    fleet: Fleet, host: Host, monkeypatch
):
    monkeypatch.setattr(execute, "MAX_SECONDS_IN_A_ROW", 0.0)
    agent = fleet.agent()
    first, *_ = (fleet.enqueue(agent) for _ in range(3))
    assert execute.execute(live_run(first).pk, host) == 1
    assert run_states(agent) == ["succeeded", "pending"]


def test_under_a_cap_of_the_project_a_finished_run_admits_the_oldest_work(fleet: Fleet, host: Host):
    Tenant.objects.update(scale=1)
    a, b = fleet.agent("a"), fleet.agent("b")
    first, oldest, _ = fleet.enqueue(a), fleet.enqueue(b), fleet.enqueue(a)
    assert execute.execute(live_run(first).pk, host) == 1
    assert live_run(oldest).state == "pending"
    assert work_states(a) == ["done", "queued"]


def test_a_scheduled_run_with_a_rerun_runs_again_in_the_same_thread(
    fleet: Fleet, host: Host, tmp_path
):
    script = f"echo x >> {tmp_path}/runs; [ $(wc -l < {tmp_path}/runs) -ge 3 ] || exit 42"
    agent = fleet.agent(command=shell(script))
    fleet.fire(fleet.schedule(agent))
    assert execute.execute(agent.runs.get().pk, host) == 3
    assert [(run.state, run.rerun) for run in agent.runs.order_by("id")] == [
        ("succeeded", 0),
        ("succeeded", 1),
        ("succeeded", 2),
    ]


def test_exit_42_of_a_run_a_person_asked_for_is_plain_success(fleet: Fleet, host: Host):
    run = do(fleet, host, fleet.agent(command=shell("exit 42")))
    assert (run.state, run.exit_code) == ("succeeded", 42)


def test_a_draining_worker_finishes_its_run_and_begins_no_other(fleet: Fleet, host: Host):
    agent = fleet.agent()
    first, _ = fleet.enqueue(agent), fleet.enqueue(agent)
    run = live_run(first)
    clocked = Host(host.worker_id, lambda: _drain_then(host, NOON), host.live, host.draining)
    assert execute.execute(run.pk, clocked) == 1
    assert run_states(agent) == ["succeeded", "pending"]


def _drain_then(host: Host, now):
    host.draining.set()
    return now


def test_a_hint_that_reaches_a_draining_worker_begins_nothing(fleet: Fleet, host: Host):
    agent = fleet.agent()
    run = live_run(fleet.enqueue(agent))
    host.draining.set()
    assert execute.execute(run.pk, host) == 0
    assert run_states(agent) == ["pending"]


# --- while it runs --------------------------------------------------------------------------


@pytest.fixture
def executing(durable_fleet: Fleet) -> Iterator[object]:
    made: list[Executing] = []

    def begin(agent: Agent, **request: object) -> Executing:
        made.append(Executing(durable_fleet, agent, **request))
        return made[-1]

    yield begin
    for one in made:
        one.close()


def lose(run: Run) -> None:
    run.refresh_from_db()
    assert in_transaction(lambda: lifecycle.lose_run(run, at(40), "lost: its worker died"))


def _until(path: Path, then: str) -> list[str]:
    return shell(f"while [ ! -e {path} ]; do sleep 0.02; done; {then}")


def test_a_stop_request_stops_the_run_with_the_reason(durable_fleet: Fleet, executing):
    agent = durable_fleet.agent(command=["sleep", "60"])
    going_on = executing(agent)
    going_on.control.stop("stopped by ann")
    assert going_on.ended()
    run = agent.runs.get()
    assert (run.state, run.error, work_states(agent)) == ("stopped", "stopped by ann", ["failed"])
    assert going_on.host.live == {}


def test_output_can_be_read_while_the_run_goes_on(durable_fleet: Fleet, executing):
    agent = durable_fleet.agent(command=shell("echo early; sleep 60"))
    going_on = executing(agent)
    wait_for(lambda: printed(going_on.run.pk) == "early\n", 3)
    assert run_states(agent) == ["running"]


def test_a_superseded_worker_writes_no_output(durable_fleet: Fleet, executing, tmp_path):
    agent = durable_fleet.agent(command=_until(tmp_path / "go", "echo late"))
    going_on = executing(agent)
    lose(going_on.run)
    (tmp_path / "go").touch()
    assert going_on.ended()
    assert run_states(agent) == ["lost"]
    assert not RunOutput.objects.exists()


def test_a_superseded_worker_writes_no_output_while_the_run_goes_on(
    durable_fleet: Fleet, executing, tmp_path
):
    agent = durable_fleet.agent(command=_until(tmp_path / "go", "echo late; sleep 60"))
    going_on = executing(agent)
    lose(going_on.run)
    (tmp_path / "go").touch()
    time.sleep(0.8)  # longer than output is held back before it is written
    assert not RunOutput.objects.exists()


def test_a_run_whose_owner_was_deleted_meanwhile_ends(durable_fleet: Fleet, executing, tmp_path):
    """Its rows are gone: there is nothing to write, and nothing to try again."""
    agent = durable_fleet.agent(command=_until(tmp_path / "go", "echo late"))
    going_on = executing(agent)
    durable_fleet.tenant.delete()
    (tmp_path / "go").touch()
    assert going_on.ended(5)
    assert not Run.objects.exists()


def test_a_thread_that_hands_over_sends_the_hint_itself(
    durable_fleet: Fleet, executing, broker, monkeypatch, tmp_path
):
    monkeypatch.setattr(execute, "MAX_RUNS_IN_A_ROW", 1)
    agent = durable_fleet.agent(command=_until(tmp_path / "go", "true"))
    going_on = executing(agent)
    broker.client().flushall()
    waiting = durable_fleet.enqueue(agent)
    (tmp_path / "go").touch()
    assert going_on.ended()
    assert live_run(waiting).state == "pending"
    wait_for(lambda: broker.client().llen(f"{CONF.redis_prefix}{agent.queue}") == 1)


def test_nothing_of_a_run_is_left_behind(durable_fleet: Fleet, executing, tmp_path):
    """Beside the directory and the sandbox of the agent, which its next run uses."""
    agent = durable_fleet.agent(command=shell(f"sleep 60 & echo $! > {tmp_path}/pid; exit 0"))
    host = Host(durable_fleet.worker().pk, lambda: NOON)
    descriptors = threads = 0
    for number in range(1, 4):
        execute.execute(live_run(durable_fleet.enqueue(agent)).pk, host)
        pid = int((tmp_path / "pid").read_text())
        wait_for(lambda pid=pid: not Path(f"/proc/{pid}").exists(), 2)
        assert WorkItem.objects.filter(state="done").count() == number
        found = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
        if number == 1:
            descriptors, threads = found
        assert found <= (descriptors + 1, threads + SPARE_THREADS)
