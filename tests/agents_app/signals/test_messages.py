"""Messages: read once by a running run, or turned into work; never lost."""

import pytest

from agents_app.errors import Refused
from agents_app.maintenance.reconcile import reconcile
from agents_app.models import Message, Trigger
from agents_app.signals import messages
from tests.agents_app.calling import program
from tests.agents_app.fleet import NOON, Fleet, at


def test_a_message_to_an_idle_agent_becomes_work_at_once(fleet: Fleet):
    agent = fleet.agent()
    sent = messages.send(agent, "look at this", "ann", NOON)
    item = agent.work_items.get()
    assert (item.trigger, item.prompt, item.requested_by, item.state) == (
        *(Trigger.MESSAGE, "look at this"),
        *("ann", "admitted"),
    )
    assert Message.objects.get() == sent
    assert (sent.work_item_id, Message.objects.get().read_at) == (item.pk, NOON)


def test_a_running_run_reads_a_message_once(fleet: Fleet):
    agent = fleet.agent(scale=2)
    one, two = program(fleet, agent), program(fleet, agent)
    messages.send(agent, "first ✉", "ann", NOON)
    messages.send(agent, "second", "token ci", at(1))
    assert agent.work_items.count() == 2
    peeked = one.says("inbox", at(2), peek=True)
    read = one.says("inbox", at(2))
    assert peeked == read
    assert [(m["from"], m["text"], m["at"]) for m in read["messages"]] == [
        ("ann", "first ✉", NOON.timestamp()),
        ("token ci", "second", at(1).timestamp()),
    ]
    assert one.says("inbox", at(3))["messages"] == two.says("inbox", at(3))["messages"] == []
    assert set(Message.objects.values_list("run_id", flat=True)) == {one.job.run_id}


def test_an_unread_message_becomes_work_when_the_run_has_ended(fleet: Fleet):
    agent = fleet.agent()
    one = program(fleet, agent)
    messages.send(agent, "too late", "ann", NOON)
    assert reconcile(at(1), "here")["messages_queued"] == 0
    one.ends()
    assert reconcile(at(2), "here")["messages_queued"] == 1
    assert reconcile(at(3), "here")["messages_queued"] == 0
    assert agent.work_items.latest("pk").prompt == "too late"


def test_a_paused_agent_keeps_its_messages_and_a_disabled_one_takes_none(fleet: Fleet):
    paused, off = fleet.agent("paused", paused_at=NOON), fleet.agent("off", scale=0)
    messages.send(paused, "later", "ann", NOON)
    assert paused.work_items.get().state == "queued"
    with pytest.raises(Refused, match="scale is 0"):
        messages.send(off, "now", "ann", NOON)
    for text in ("", " \n", "x" * 100_001):
        with pytest.raises(Refused):
            messages.send(paused, text, "ann", NOON)
    assert Message.objects.count() == 1
