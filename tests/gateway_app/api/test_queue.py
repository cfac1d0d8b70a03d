"""/v1/queue: list, show, drop, clear, restore; /v1/events: list."""

import pytest

from agents_app.models import WorkItem
from tests.agents_app.fleet import NOON, Fleet, at, work_states
from tests.gateway_app.api.calling import Api


@pytest.fixture
def waiting(fleet: Fleet) -> list[WorkItem]:
    """Two work items that wait for a slot, and one of a paused agent."""
    agent, paused = fleet.agent(scale=1), fleet.agent("paused", paused_at=NOON)
    fleet.start(fleet.enqueue(agent))
    items = [fleet.enqueue(agent, prompt=f"number {number}") for number in range(2)]
    return [*items, fleet.enqueue(paused)]


def ids(api: Api, **query: str) -> list[int]:
    return [item["id"] for item in api.get("/queue", **query).json["items"]]


def test_queued_work_is_listed_in_the_order_of_its_start(reader: Api, waiting: list[WorkItem]):
    assert ids(reader) == [item.pk for item in waiting]
    assert ids(reader, agent="paused") == [waiting[2].pk]
    shown = reader.get(f"/queue/{waiting[0].pk}").json
    assert (shown["agent"], shown["prompt"], shown["state"]) == ("reporter", "number 0", "queued")
    assert shown["available_at"] == NOON.timestamp()


def test_a_work_item_is_dropped_once(api: Api, waiting: list[WorkItem]):
    shown = api.post(f"/queue/{waiting[0].pk}/drop").json
    assert (shown["state"], shown["reason"]) == ("dropped", "dropped by token ci")
    reply = api.post(f"/queue/{waiting[0].pk}/drop")
    assert (reply.status, reply.message) == (
        409,
        f"work item {waiting[0].pk} is dropped: only queued work can be dropped",
    )
    assert ids(api, state="dropped") == [waiting[0].pk]


def test_a_queue_is_cleared_and_restored(fleet: Fleet, api: Api, waiting: list[WorkItem]):
    assert api.post("/queue/clear", {"agent": "reporter"}).json == {"cleared": 2}
    assert ids(api) == [waiting[2].pk]
    assert api.post("/queue/clear").json == {"cleared": 1}
    assert api.post("/queue/restore").json == {"restored": 3}
    assert ids(api) == [item.pk for item in waiting]


def test_a_tenant_clears_only_its_own_queue(
    fleet: Fleet, others: Fleet, api: Api, waiting: list[WorkItem]
):
    theirs = others.agent(paused_at=NOON)
    others.enqueue(theirs)
    assert api.post("/queue/clear").json == {"cleared": 3}
    assert work_states(theirs) == ["queued"]
    WorkItem.objects.update(state="cleared")
    assert api.post("/queue/restore").json == {"restored": 4}
    assert work_states(theirs) == ["cleared"]


# --- events ---------------------------------------------------------------------------------


def test_events_are_found_by_name_agent_run_and_time(fleet: Fleet, reader: Api):
    one, two = fleet.agent("one"), fleet.agent("two")
    job = fleet.start(fleet.enqueue(one))
    fleet.finish(job, "failed", at(60), error="no luck")
    fleet.enqueue(two, at(120))

    def names(**query: object) -> list[str]:
        return [event["name"] for event in reader.get("/events", **query).json["events"]]

    of_one = ["run.failed", "run.started", "run.admitted"]
    assert names(agent="one") == of_one
    assert names(run_id=job.run_id) == of_one
    assert names(name="run.failed") == ["run.failed"]
    assert names(since=at(60).timestamp(), agent="one") == ["run.failed"]
    assert names(agent="one", order="oldest") == of_one[::-1]
    shown = reader.get("/events", name="run.failed").json["events"][0]
    assert (shown["agent"], shown["run_id"]) == ("one", job.run_id)
    assert (shown["detail"], shown["at"]) == ("no luck", at(60).timestamp())
