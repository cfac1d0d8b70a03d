"""/v1/agents: show, scale, pause, resume, stop, run."""

import pytest

from agents_app.models import Agent, RunEvent, WorkItem
from tests.agents_app.fleet import NOON, Fleet, run_states, work_states
from tests.gateway_app.api.calling import Api, api_of


def details_of(name: str) -> list[str]:
    return list(RunEvent.objects.filter(name=name).values_list("detail", flat=True))


def test_an_agent_shows_its_runs_queue_and_next_fire(fleet: Fleet, reader: Api):
    agent = fleet.agent(scale=2, description="Reports")
    fleet.schedule(agent)
    fleet.start(fleet.enqueue(agent))
    pending = fleet.enqueue(agent).runs.get()
    fleet.enqueue(agent)
    shown = reader.get("/agents/reporter").json
    assert (shown["state"], shown["scale"], shown["description"]) == ("enabled", 2, "Reports")
    assert (shown["running"], shown["pending"], shown["queue_depth"]) == (1, 1, 1)
    assert shown["next_fire_at"] == NOON.timestamp()
    assert shown["last_run"]["id"] == pending.pk
    assert reader.get("/agents").json["agents"] == [shown]


def test_the_secrets_of_an_agent_are_not_shown(fleet: Fleet, reader: Api):
    fleet.agent(env={"KEY": "hunter2"}, params={"key": "hunter2"}, instructions="hunter2")
    assert "hunter2" not in reader.get("/agents/reporter").response.content.decode()


def test_the_scale_is_changed_at_once(fleet: Fleet, api: Api):
    agent = fleet.agent(scale=1)
    fleet.enqueue(agent)
    fleet.enqueue(agent)
    assert api.post("/agents/reporter/scale", {"scale": 2}).json["pending"] == 2
    assert details_of("agent.scaled") == ["token ci: 2"]


def test_an_agent_is_paused_with_a_note_and_resumed(fleet: Fleet, api: Api):
    agent = fleet.agent()
    shown = api.post("/agents/reporter/pause", {"note": "too loud"}).json
    assert (shown["state"], shown["pause_note"]) == ("paused", "too loud")
    fleet.enqueue(agent)
    assert work_states(agent) == ["queued"]
    assert api.post("/agents/reporter/resume").json["state"] == "enabled"
    assert work_states(agent) == ["admitted"]
    assert details_of("agent.paused") == ["token ci: too loud"]


def test_pausing_twice_is_not_an_error_and_keeps_the_first_note(fleet: Fleet, api: Api):
    fleet.agent()
    api.post("/agents/reporter/pause", {"note": "first"})
    second = api.post("/agents/reporter/pause", {"note": "second"})
    assert (second.status, second.json["pause_note"]) == (200, "first")


def test_a_stop_request_stops_all_runs_of_the_agent(fleet: Fleet, api: Api):
    agent = fleet.agent(scale=2)
    fleet.start(fleet.enqueue(agent))
    fleet.enqueue(agent)
    assert api.post("/agents/reporter/stop").json == {"stopping": 2}
    assert run_states(agent) == ["running", "stopped"]
    assert api.post("/agents/reporter/stop").json == {"stopping": 0}


# --- running an agent -----------------------------------------------------------------------


def test_an_agent_is_run_with_a_prompt(fleet: Fleet, api: Api):
    agent = fleet.agent(scale=1)
    first = api.post("/agents/reporter/run", {"prompt": "look at this"})
    item = agent.work_items.get()
    assert first.status == 202
    assert first.json == {
        "work_item_id": item.pk,
        "run_id": item.runs.get().pk,
        "agent": "reporter",
        "state": "admitted",
        "waits_because": None,
        "trace_id": item.trace_id,
        "repeated": False,
    }
    assert (item.prompt, item.requested_by, item.trigger) == ("look at this", "token ci", "manual")
    second = api.post("/agents/reporter/run").json
    assert (second["state"], second["run_id"]) == ("queued", None)


def test_a_repeated_idempotency_key_queues_work_once(fleet: Fleet, api: Api):
    fleet.agent(scale=9)
    replies = [
        api.post("/agents/reporter/run", {"prompt": "once"}, Idempotency_Key="k-1")
        for _ in range(3)
    ]
    assert [reply.status for reply in replies] == [202, 202, 202]
    assert [reply.json["repeated"] for reply in replies] == [False, True, True]
    assert len({reply.json["work_item_id"] for reply in replies}) == 1
    assert WorkItem.objects.count() == 1


def test_an_idempotency_key_of_another_request_is_refused(fleet: Fleet, api: Api):
    fleet.agent(scale=9)
    fleet.agent("other", scale=9)
    api.post("/agents/reporter/run", {"prompt": "once"}, Idempotency_Key="k-1")
    for path, prompt in (("/agents/reporter/run", "twice"), ("/agents/other/run", "once")):
        reply = api.post(path, {"prompt": prompt}, Idempotency_Key="k-1")
        assert (reply.status, reply.error["code"]) == (409, "idempotency_key_reused")
    assert WorkItem.objects.count() == 1


def test_idempotency_keys_are_separate_per_tenant(fleet: Fleet, others: Fleet, api: Api):
    fleet.agent()
    others.agent()
    theirs = api_of(others.tenant)
    for client in (api, theirs):
        assert not client.post("/agents/reporter/run", Idempotency_Key="k").json["repeated"]


@pytest.mark.parametrize("key", ["", " ", "x" * 191, "a b", "\N{SNOWMAN}"])
def test_an_invalid_idempotency_key_is_refused(fleet: Fleet, api: Api, key: str):
    fleet.agent()
    assert api.post("/agents/reporter/run", Idempotency_Key=key).status == 400


def test_running_a_disabled_agent_is_refused_with_a_remedy(fleet: Fleet, api: Api):
    fleet.agent(scale=0)
    reply = api.post("/agents/reporter/run")
    assert reply.status == 409
    assert "give it a scale above 0" in reply.message
    assert Agent.objects.get().work_items.count() == 0


# --- agents that are gone -----------------------------------------------------------------------


def test_an_agent_that_is_gone_is_forgotten_by_an_administrator(fleet: Fleet, api: Api, admin: Api):
    agent = fleet.agent()
    fleet.finish(fleet.start(fleet.enqueue(agent)))
    refused = admin.delete("/agents/reporter")
    assert refused.status == 409
    assert "only an agent whose directory was removed" in refused.json["error"]["message"]
    Agent.objects.update(removed_at=NOON)
    assert api.delete("/agents/reporter").status == 403
    assert admin.delete("/agents/reporter").status == 200
    assert not Agent.objects.exists()
    assert details_of("agent.forgotten")[0].startswith("reporter: token ")
    assert admin.delete("/agents/reporter").status == 404


def test_agents_of_an_earlier_project_are_listed_on_request(fleet: Fleet, reader: Api):
    fleet.agent("present")
    fleet.agent("previous", directory="/another/agents/previous", removed_at=NOON)

    def listed(query: str = "") -> list[str]:
        return [agent["name"] for agent in reader.get(f"/agents{query}").json["agents"]]

    assert listed() == ["present"]
    assert listed("?all=true") == ["present", "previous"]
    assert reader.get("/agents/previous").status == 200
