"""The schema of the database changes while processes of the older version run."""

import json
import os
import urllib.error
import urllib.request

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.real_fleet import WHEN_TOLD
from tests.parts.waiting import wait_for

NEWER = (
    "INSERT INTO django_migrations (app, name, applied) "
    "VALUES ('agents_app', '9999_newer', CURRENT_TIMESTAMP)"
)


@pytest.mark.fault("F27")
def test_processes_older_than_the_schema_finish_their_runs_and_start_no_work(
    new_fleet: NewFleet,
) -> None:
    fleet = new_fleet()
    stack = fleet.stack
    fleet.agent("going", WHEN_TOLD)
    fleet.agent("next")
    fleet.sync()
    fleet.ensure("redis", "beat", "worker-1", "gateway")
    fleet.enqueue("going")
    fleet.wait_until_running("going")
    stack.rows(NEWER)
    told = "older than the schema"
    for name in ("worker-1", "beat"):
        wait_for(lambda name=name: told in stack.log(name), 20, f"{name} does not say so")  # type: ignore[misc]
    wait_for(lambda: fleet.latest_worker()["state"] == "draining")
    with pytest.raises(urllib.error.HTTPError, match="503") as refused:
        urllib.request.urlopen(f"{stack.url}/readyz", timeout=10)
    answer = json.load(refused.value)
    assert answer["missing"] == ["schema"] and told in answer["problem"]
    assert told in stack.manage("stat").stdout
    doctor = stack.manage("doctor", "--json")
    assert doctor.returncode == 1
    details = {one["check"]: one["detail"] for one in json.loads(doctor.stdout)["findings"]}
    assert "9999_newer is newer" in details["database"]
    fleet.let_finish("going")
    fleet.wait_for_states("going", "succeeded")
    fleet.enqueue("next")
    assert stack.log("worker-1").count("schema.differs") == 1
    assert fleet.states("next") == ["pending"]
    for name in ("worker-1", "beat", "gateway"):
        os.kill(stack.processes[name].pid, 0)
    # As the new version would: the next worker, for which the schema is right, does the work.
    stack.rows("DELETE FROM django_migrations WHERE name = '9999_newer'")
    stack.stop("worker-1")
    fleet.ensure("worker-1")
    fleet.wait_for_states("next", "succeeded")


@pytest.mark.fault("F27")
def test_processes_newer_than_the_schema_ask_for_migrate_and_begin_after_it(
    new_fleet: NewFleet,
) -> None:
    fleet = new_fleet()
    stack = fleet.stack
    fleet.agent("waits")
    fleet.sync()
    (last,) = stack.rows(
        "SELECT id, name FROM django_migrations WHERE app = 'agents_app' ORDER BY id DESC LIMIT 1"
    )
    stack.rows("DELETE FROM django_migrations WHERE id = ?", last["id"])
    fleet.ensure("redis", "beat")
    worker = stack.begin("worker-1")
    fleet.enqueue("waits")
    wait_for(lambda: "run manage.py migrate" in stack.log("worker-1"), 20)
    assert worker.poll() is None and fleet.states("waits") == ["pending"]
    applied = "INSERT INTO django_migrations (app, name, applied) VALUES ('agents_app', ?, ?)"
    stack.rows(applied, last["name"], "2026-01-01")
    fleet.wait_for_states("waits", "succeeded", seconds=30)
