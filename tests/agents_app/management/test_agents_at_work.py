"""Calls, locks and messages of agents on the command line."""

from agents_app.models import Message, ResourceLock, RunEvent
from agents_app.worker.lease import utc_now
from tests.agents_app.calling import Program, called
from tests.agents_app.fleet import Fleet
from tests.agents_app.management.calling import call


def speaking(fleet: Fleet, name: str = "a") -> Program:
    """Now: what is in force is decided by the clock here."""
    agent, now = fleet.agent(name), utc_now()
    return Program(fleet, fleet.start(fleet.enqueue(agent, now), now))


def test_the_tree_of_calls_is_shown_from_any_of_its_runs(durable_fleet: Fleet):
    first = speaking(durable_fleet)
    to_b = first.calls(durable_fleet.agent("b"), utc_now())
    second = called(durable_fleet, to_b, utc_now())
    second.ends("failed", utc_now(), error="it broke")
    shown = call("calls", str(second.job.run_id)).out
    assert shown.splitlines() == [
        f"a, run {first.job.run_id}, running",
        f"  b, run {second.job.run_id}, failed (call {to_b}: error): it broke",
    ]
    tree = call("calls", str(first.job.run_id), "--json").json
    assert (tree["agent"], tree["calls"][0]["status"]) == ("a", "error")
    assert call("calls", "999").code == 1


def test_locks_are_listed_and_broken(durable_fleet: Fleet):
    assert call("locks", "list").out == "no locks\n"
    first = speaking(durable_fleet)
    first.says("lock", utc_now(), uri="deploy://api")
    (listed,) = call("locks", "list", "--json").json["locks"]
    assert (listed["uri"], listed["run_id"]) == ("deploy://api", first.job.run_id)
    assert "deploy://api" in call("locks", "list").out
    holder = f"a-{first.job.run_id}"
    assert call("locks", "break", "deploy://api").out == (
        f"broke the lock of {holder} on deploy://api\n"
    )
    assert ResourceLock.objects.count() == 0
    assert RunEvent.objects.filter(name="lock.broken").count() == 1
    said = call("locks", "break", str(listed["id"]))
    assert (said.code, "there is no lock" in said.err) == (1, True)


def test_a_message_is_sent_to_an_agent(durable_fleet: Fleet):
    durable_fleet.agent("b")
    sent = call("message", "b", "look at this", "--json").json
    assert sent["work_item_id"] == Message.objects.get().work_item_id
    first = speaking(durable_fleet)
    told = call("message", "a", "hello")
    assert told.out == f"message {Message.objects.latest('pk').pk} to a: in its inbox\n"
    assert [m["text"] for m in first.says("inbox", utc_now())["messages"]] == ["hello"]
    assert call("message", "unknown", "x").code == 1
