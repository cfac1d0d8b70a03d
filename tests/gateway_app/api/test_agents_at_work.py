"""The API and running agents: trees of calls, locks and messages."""

from agents_app.models import Message, RunEvent
from agents_app.worker.lease import utc_now
from tests.agents_app.calling import Program, called
from tests.agents_app.fleet import Fleet
from tests.gateway_app.api.calling import Api


def running_program(fleet: Fleet, name: str = "a") -> Program:
    agent, now = fleet.agent(name), utc_now()
    return Program(fleet, fleet.start(fleet.enqueue(agent, now), now))


def test_the_tree_of_calls_is_shown_from_any_of_its_runs(fleet: Fleet, reader: Api):
    first = running_program(fleet)
    call = first.calls(fleet.agent("b"), utc_now())
    second = called(fleet, call, utc_now())
    trees = [
        reader.get(f"/runs/{run_id}/tree").json for run_id in (first.job.run_id, second.job.run_id)
    ]
    assert trees[0] == trees[1]
    (below,) = trees[0].pop("calls")
    assert trees[0] == {
        **{"agent": "a", "run_id": first.job.run_id, "state": "running"},
        **{"call_id": None, "status": "", "error": ""},
    }
    assert (below["call_id"], below["status"], below["run_id"]) == (
        *(call, "running"),
        second.job.run_id,
    )


def test_locks_are_listed_and_broken_with_the_scope_operate(fleet: Fleet, reader: Api, api: Api):
    first = running_program(fleet)
    fence = first.says("lock", utc_now(), uri="deploy://api")["fence"]
    (lock,) = reader.get("/locks").json["locks"]
    assert (lock["id"], lock["uri"], lock["holder"], lock["run_id"]) == (
        *(fence, "deploy://api"),
        *(f"a-{first.job.run_id}", first.job.run_id),
    )
    assert reader.delete(f"/locks/{fence}").status == 403
    assert api.delete(f"/locks/{fence}").json["uri"] == "deploy://api"
    assert api.delete(f"/locks/{fence}").status == 404
    assert reader.get("/locks").json["locks"] == []
    entry = RunEvent.objects.get(name="lock.broken")
    assert entry.detail == f"deploy://api, held by a-{first.job.run_id}: token ci"


def test_a_message_starts_a_run_or_is_put_into_the_inbox(fleet: Fleet, reader: Api, api: Api):
    fleet.agent("b")
    sent = api.post("/agents/b/messages", {"text": "hello"})
    assert (sent.status, sent.json["work_item_id"] is None) == (202, False)
    first = running_program(fleet)
    sent = api.post("/agents/a/messages", {"text": "hello ✉"})
    assert (sent.status, sent.json["work_item_id"]) == (202, None)
    (read,) = first.says("inbox", utc_now())["messages"]
    assert (read["from"], read["text"]) == ("token ci", "hello ✉")
    assert reader.post("/agents/a/messages", {"text": "x"}).status == 403
    for body in ({}, {"text": ""}, {"text": "a\0b"}):
        assert api.post("/agents/a/messages", body).status == 400
    assert Message.objects.count() == 2
