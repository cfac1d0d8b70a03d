"""Work items are enqueued, admitted to free slots, and dropped from a full queue."""

import pytest

from agents_app.errors import NotFound
from agents_app.models import RunEvent, Trigger
from agents_app.runs import dispatch
from tests.agents_app.fleet import NOON, Fleet, live_run, work_states

# --- enqueueing -----------------------------------------------------------------------------


def test_work_is_admitted_immediately_if_a_slot_is_free(fleet: Fleet):
    agent = fleet.agent()
    item = fleet.enqueue(agent, prompt="count the sheep", requested_by="ann")
    run = live_run(item)
    assert (item.state, item.attempts) == ("admitted", 1)
    assert (run.state, run.slot, run.attempt) == ("pending", 0, 1)
    assert (run.trigger, run.requested_by) == ("manual", "ann")
    assert run.trace_id == item.trace_id != ""


def test_work_is_queued_if_no_slot_is_free(fleet: Fleet):
    agent = fleet.agent(scale=2)
    states = [fleet.enqueue(agent).state for _ in range(3)]
    assert states == ["admitted", "admitted", "queued"]
    assert set(agent.runs.values_list("slot", flat=True)) == {0, 1}


def test_agents_share_neither_slots_nor_queues(fleet: Fleet):
    busy, other = (fleet.agent(name, work_queue_size=1) for name in ("busy", "other"))
    for agent in (busy, busy, busy, other, other):
        fleet.enqueue(agent)
    assert work_states(busy) == ["admitted", "dropped", "queued"]
    assert work_states(other) == ["admitted", "queued"]


def test_the_oldest_work_item_is_admitted_first(fleet: Fleet):
    agent = fleet.agent()
    first, second, third = (fleet.enqueue(agent) for _ in range(3))
    fleet.finish(fleet.start(first))
    assert work_states(agent) == ["done", "admitted", "queued"]
    fleet.finish(fleet.start(second))
    assert live_run(third).state == "pending"


def test_the_same_key_makes_no_second_work_item(fleet: Fleet):
    agent = fleet.agent(scale=2)
    first = fleet.enqueue(agent, idempotency_key="delivery 7", prompt="first")
    again = fleet.enqueue(agent, idempotency_key="delivery 7", prompt="again")
    assert (again.pk, again.prompt) == (first.pk, "first")
    assert agent.runs.count() == 1


def test_a_repeated_key_returns_the_current_state_of_the_work_item(fleet: Fleet):
    agent = fleet.agent()
    fleet.finish(fleet.start(fleet.enqueue(agent, idempotency_key="k")))
    again = fleet.enqueue(agent, idempotency_key="k")
    assert again.state == "done"
    assert agent.runs.count() == 1


def test_an_unknown_agent_is_refused(fleet: Fleet):
    with pytest.raises(NotFound, match="no such agent"):
        dispatch.enqueue(dispatch.Request(fleet.tenant.pk, 12345, Trigger.MANUAL), NOON)


@pytest.mark.parametrize("whose", ["agent", "tenant"])
def test_a_pause_queues_requested_work(fleet: Fleet, whose):
    agent = fleet.agent()
    paused = agent if whose == "agent" else fleet.tenant
    paused.paused_at = NOON
    paused.save()
    assert fleet.enqueue(agent).state == "queued"


# --- a full queue ---------------------------------------------------------------------------


def test_a_full_queue_drops_its_oldest_work_item_with_a_reason(fleet: Fleet):
    agent = fleet.agent(work_queue_size=2)
    running, oldest, *_ = (fleet.enqueue(agent, prompt=str(number)) for number in range(4))
    oldest.refresh_from_db()
    assert work_states(agent) == ["admitted", "dropped", "queued", "queued"]
    assert oldest.reason == "overflow: more than 2 work items were queued"
    assert oldest.finished_at == NOON
    assert live_run(running).state == "pending"


def test_a_dropped_item_is_logged(durable_fleet: Fleet, caplog):
    agent = durable_fleet.agent(work_queue_size=1)
    _, dropped, _ = (durable_fleet.enqueue(agent) for _ in range(3))
    (line,) = [r for r in caplog.records if r.msg["event"] == "work.overflowed"]
    assert (line.levelname, line.msg["agent_id"]) == ("WARNING", agent.pk)
    assert line.msg["detail"].startswith(f"work item {dropped.pk}: overflow")
    assert RunEvent.objects.filter(name="work.overflowed", agent=agent).count() == 1


def test_a_queue_of_size_zero_keeps_the_newest_work_item(fleet: Fleet):
    agent = fleet.agent(work_queue_size=0)
    for _ in range(3):
        newest = fleet.enqueue(agent)
    assert newest.state == "queued"
    assert work_states(agent) == ["admitted", "dropped", "queued"]
