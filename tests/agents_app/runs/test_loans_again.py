"""Loans when some of what was called cannot start."""

from agents_app.models import Agent, Tenant
from tests.agents_app.calling import program, work_of
from tests.agents_app.fleet import NOON, Fleet


def test_one_that_is_paused_keeps_no_other_from_starting_in_the_callers_place(fleet: Fleet):
    Tenant.objects.update(scale=1)
    first = program(fleet, fleet.agent("a"))
    paused = first.calls(fleet.agent("b"))
    other = first.calls(fleet.agent("c"))
    Agent.objects.filter(name="b").update(paused_at=NOON)
    first.waits(paused, other)
    assert work_of(paused).state == "queued"
    assert work_of(other).state == "admitted"
