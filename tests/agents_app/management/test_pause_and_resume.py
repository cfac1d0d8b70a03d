"""A pause is stored with its note; a resume starts the queued work."""

from agents_app.models import Agent, RunEvent, Tenant
from tests.agents_app.fleet import Fleet, work_states
from tests.agents_app.management.calling import call


def test_an_agent_is_paused_with_a_note_and_resumed(durable_fleet: Fleet):
    agent = durable_fleet.agent()
    assert call("pause", "reporter", "--note", "too loud").out == "reporter paused\n"
    agent.refresh_from_db()
    assert agent.paused_at is not None and agent.pause_note == "too loud"
    call("run", "reporter")
    assert work_states(agent) == ["queued"]
    assert call("resume", "reporter").out == "reporter resumed\n"
    assert work_states(agent) == ["admitted"]
    events = RunEvent.objects.filter(run__isnull=True).order_by("pk")
    names = list(events.values_list("name", flat=True))
    assert names == ["agent.paused", "work.requested", "agent.resumed"]


def test_without_a_name_it_is_the_scheduler(durable_fleet: Fleet):
    agent = durable_fleet.agent()
    assert call("pause", "--note", "release").out == "Scheduler paused\n"
    assert Tenant.objects.get().pause_note == "release"
    assert Agent.objects.get().paused_at is None
    call("run", "reporter")
    assert call("resume").out == "Scheduler resumed\n"
    assert work_states(agent) == ["admitted"]


def test_a_second_pause_keeps_the_first_note_and_says_so(durable_fleet: Fleet):
    durable_fleet.agent()
    call("pause", "reporter", "--note", "first")
    again = call("pause", "reporter", "--note", "second")
    assert (again.code, again.out) == (0, "reporter was already paused\n")
    assert Agent.objects.get().pause_note == "first"
    call("resume", "reporter")
    assert call("resume", "reporter").out == "reporter was not paused\n"


def test_json_says_whether_anything_changed(durable_fleet: Fleet):
    durable_fleet.agent()
    assert call("pause", "reporter", "--json").json == {
        "agent": "reporter",
        "paused": True,
        "changed": True,
    }
    assert call("pause", "reporter", "--json").json["changed"] is False
    assert call("resume", "--json").json == {"agent": None, "paused": False, "changed": False}


def test_a_note_that_does_not_fit_is_refused_not_cut(durable_fleet: Fleet):
    durable_fleet.agent()
    said = call("pause", "reporter", "--note", "x" * 501)
    assert (said.code, said.err) == (1, "the note has 501 characters; the maximum is 500\n")
    assert Agent.objects.get().paused_at is None
