"""Queued work is listed, dropped, cleared and restored."""

from datetime import UTC, datetime, timedelta

from agents_app.models import RunEvent, WorkItem
from tests.agents_app.fleet import Fleet, work_states
from tests.agents_app.management.calling import call


def test_what_waits_is_listed_oldest_first(durable_fleet: Fleet):
    agent, other = durable_fleet.agent(), durable_fleet.agent("other")
    for name in ("first", "second", "third"):
        durable_fleet.enqueue(agent, prompt=name, requested_by="ann")
    durable_fleet.enqueue(other)
    durable_fleet.enqueue(other, prompt="fourth\nline")
    listed = call("queue", "list", "--json").json
    assert [item["prompt"] for item in listed["items"]] == ["second", "third", "fourth\nline"]
    assert listed["items"][0]["created_at"] == "2026-03-02T12:00:00Z"
    assert listed["cleared"] == 0
    assert [i["agent"] for i in call("queue", "list", "other", "--json").json["items"]] == ["other"]
    lines = call("queue", "list").out.splitlines()
    assert lines[0].split()[:2] == ["ITEM", "AGENT"]
    assert [line.split()[1] for line in lines[1:]] == ["reporter", "reporter", "other"]
    assert lines[3].endswith("fourth line")


def test_an_empty_queue_says_so(durable_fleet: Fleet):
    assert call("queue", "list").out == "the queue is empty\n"


def test_only_a_time_still_to_come_is_shown(durable_fleet: Fleet):
    agent = durable_fleet.agent()
    item = [durable_fleet.enqueue(agent) for _ in range(2)][1]
    line = call("queue", "list").out.splitlines()[1]
    assert line.count(":") == 2
    WorkItem.objects.filter(pk=item.pk).update(available_at=datetime.now(UTC) + timedelta(hours=1))
    assert call("queue", "list").out.splitlines()[1].count(":") == 4


def test_an_item_is_dropped_for_good_and_the_journal_knows_who(durable_fleet: Fleet):
    agent = durable_fleet.agent()
    item = [durable_fleet.enqueue(agent) for _ in range(3)][1]
    assert call("queue", "drop", str(item.pk)).out == "dropped 1 work item\n"
    item.refresh_from_db()
    assert item.state == "dropped" and item.reason.startswith("dropped by ")
    event = RunEvent.objects.get(name="work.dropped")
    assert event.detail == f"work item {item.pk}: {item.reason}"
    assert work_states(agent) == ["admitted", "dropped", "queued"]


def test_what_does_not_wait_cannot_be_dropped(durable_fleet: Fleet):
    item = durable_fleet.enqueue(durable_fleet.agent())
    said = call("queue", "drop", str(item.pk))
    assert (said.code, said.err) == (1, f"work item {item.pk} is not queued: it is admitted\n")
    assert not RunEvent.objects.filter(name="work.dropped").exists()


def test_a_cleared_queue_comes_back_in_its_old_order(durable_fleet: Fleet):
    agent, other = durable_fleet.agent(), durable_fleet.agent("other")
    first, *_ = [durable_fleet.enqueue(agent) for _ in range(3)]
    for _ in range(2):
        durable_fleet.enqueue(other)
    assert call("queue", "clear", "reporter").out == "cleared 2 work items\n"
    assert work_states(agent) == ["admitted", "cleared", "cleared"]
    assert work_states(other) == ["admitted", "queued"]
    assert "2 cleared" in call("queue", "list").out
    assert call("queue", "restore", "--json").json == {"restored": 2}
    assert work_states(agent) == ["admitted", "queued", "queued"]
    durable_fleet.finish(durable_fleet.start(first), now=datetime.now(UTC))
    assert work_states(agent) == ["done", "admitted", "queued"]


def test_without_a_name_every_queue_is_cleared(durable_fleet: Fleet):
    for name in ("one", "two"):
        agent = durable_fleet.agent(name)
        durable_fleet.enqueue(agent)
        durable_fleet.enqueue(agent)
    assert call("queue", "clear", "--json").json == {"cleared": 2}
    assert WorkItem.objects.filter(state="admitted").count() == 2
