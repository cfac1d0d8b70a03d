"""/v1/scheduler and /v1/project: status, pause, scale of the project, stop."""

from pathlib import Path

import pytest

from agents_app.conf import CONF
from agents_app.models import RunEvent, Scheduler, Tenant
from tests.agents_app.fleet import NOON, Fleet, at, work_states
from tests.gateway_app.api.calling import Api, api_of


def test_the_status_counts_checks_triggers_and_runs(fleet: Fleet, reader: Api):
    Scheduler.objects.create(
        pk=1, started_at=NOON, check_count=7, trigger_count=3, last_check_at=NOON
    )
    one, two = fleet.agent("one", scale=2), fleet.agent("two")
    for agent in (one, one, two):
        fleet.start(fleet.enqueue(agent))
    fleet.enqueue(two)
    shown = reader.get("/scheduler").json
    assert (shown["state"], shown["check_count"], shown["trigger_count"]) == ("running", 7, 3)
    assert shown["started_at"] == shown["last_check_at"] == NOON.timestamp()
    assert (shown["running"], shown["running_by_agent"]) == (3, {"one": 2, "two": 1})
    assert (shown["queue_depth"], shown["paused"], shown["scale"]) == (1, False, None)


def test_before_the_first_start_the_scheduler_is_stopped(fleet: Fleet, reader: Api):
    shown = reader.get("/scheduler").json
    assert (shown["state"], shown["started_at"], shown["running_by_agent"]) == ("stopped", None, {})


def test_a_pause_holds_the_work_of_one_tenant_only(fleet: Fleet, others: Fleet, api: Api):
    mine, theirs = fleet.agent(), others.agent()
    shown = api.post("/scheduler/pause", {"note": "release"}).json
    assert (shown["paused"], shown["pause_note"]) == (True, "release")
    fleet.enqueue(mine)
    others.enqueue(theirs)
    assert (work_states(mine), work_states(theirs)) == (["queued"], ["admitted"])
    assert api.post("/scheduler/resume").json["paused"] is False
    assert work_states(mine) == ["admitted"]


def test_the_scale_of_the_project_is_set_and_removed(fleet: Fleet, api: Api):
    agent = fleet.agent(scale=5)
    assert api.post("/project/scale", {"scale": 1}).json["scale"] == 1
    fleet.enqueue(agent)
    fleet.enqueue(agent)
    assert work_states(agent) == ["admitted", "queued"]
    assert api.post("/project/scale", {"scale": None}).json["scale"] is None
    assert work_states(agent) == ["admitted", "admitted"]
    entries = RunEvent.objects.filter(name="project.scaled").order_by("pk")
    assert [event.detail for event in entries] == ["token ci: 1", "token ci: no cap"]


@pytest.mark.parametrize("body", [{}, {"scale": 0}, {"scale": 10_001}, {"scale": "1"}])
def test_an_invalid_scale_of_the_project_is_refused(
    fleet: Fleet, api: Api, body: dict[str, object]
):
    assert api.post("/project/scale", body).status == 400
    assert Tenant.objects.get().scale is None


def test_a_stop_by_an_operator_drains_and_can_clear_the_queue(fleet: Fleet, admin: Api):
    agent = fleet.agent(scale=1)
    fleet.worker(lease_until=at(days=100_000))
    fleet.start(fleet.enqueue(agent))
    fleet.enqueue(agent)
    reply = admin.post("/scheduler/stop", {"keep_queue": False})
    assert (reply.status, reply.json) == (202, {"state": "draining", "cleared": 1})
    assert work_states(agent) == ["admitted", "cleared"]


def test_a_stop_asks_the_up_of_this_host_to_drain(
    fleet: Fleet, admin: Api, monkeypatch: pytest.MonkeyPatch
):
    asked: list[Path] = []
    monkeypatch.setattr("agents_app.runs.shutdown.drain_up", asked.append)
    assert admin.post("/scheduler/stop").status == 202
    assert asked == [CONF.data]


def test_while_it_drains_work_is_queued_and_the_answer_gives_the_reason(fleet: Fleet, admin: Api):
    agent = fleet.agent(scale=2)
    fleet.worker(lease_until=at(days=100_000))
    run_id = fleet.start(fleet.enqueue(agent)).run_id
    admin.post("/scheduler/stop")
    assert admin.get("/scheduler").json["state"] == "draining"
    for path in ("/agents/reporter/run", f"/runs/{run_id}/rerun"):
        reply = admin.post(path)
        assert (reply.status, reply.json["state"], reply.json["run_id"]) == (202, "queued", None)
        assert reply.json["waits_because"] == "the scheduler is draining"
    assert work_states(agent) == ["admitted", "queued", "queued"]


def test_a_stop_keeps_the_queue(fleet: Fleet, admin: Api):
    agent = fleet.agent(paused_at=NOON)
    fleet.enqueue(agent)
    assert admin.post("/scheduler/stop").json["cleared"] == 0
    assert work_states(agent) == ["queued"]


def test_only_an_operator_can_stop_the_scheduler(fleet: Fleet, others: Fleet, api: Api):
    assert api.post("/scheduler/stop").status == 403
    reply = api_of(others.tenant, "admin").post("/scheduler/stop")
    assert (reply.status, reply.error["code"]) == (403, "forbidden")
    assert not Scheduler.objects.exists()
