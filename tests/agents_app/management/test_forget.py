"""Agents that are gone: forgotten on request, and left out of default views."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from agents_app.accounts import removal
from agents_app.conf import CONF
from agents_app.errors import Refused
from agents_app.installation import state_directory
from agents_app.maintenance.invariants import violations
from agents_app.models import Agent, Firing, Run, RunEvent, Schedule, Usage, WorkItem
from tests.agents_app.fleet import NOON, Fleet
from tests.agents_app.management.calling import call


def used_agent(fleet: Fleet, name: str = "reporter", **columns: object) -> Agent:
    """An agent with rows in every table that belongs to an agent."""
    agent = fleet.agent(name, **columns)
    schedule = fleet.schedule(agent)
    fleet.fire(schedule)
    fleet.finish(fleet.start(agent.work_items.get()))
    Usage.objects.create(tenant=fleet.tenant, agent=agent, day=NOON.date(), tokens=5)
    return agent


def test_an_agent_that_is_gone_is_forgotten_with_all_its_rows(fleet: Fleet):
    agent, other = used_agent(fleet), used_agent(fleet, "other")
    Agent.objects.filter(pk=agent.pk).update(removed_at=NOON)
    said = call("forget", "reporter")
    assert (said.code, said.out) == (1, "")
    assert said.err == "this deletes reporter and its 1 runs: add --yes to confirm\n"
    assert call("forget", "reporter", "--yes").out == "reporter forgotten\n"
    for table in (Run, WorkItem, Schedule, Usage):
        assert set(table._default_manager.values_list("agent", flat=True)) == {other.pk}
    assert Firing.objects.count() == 1
    (event,) = RunEvent.objects.filter(name="agent.forgotten")
    assert event.detail.startswith("reporter: ")
    assert list(violations(NOON)) == []
    assert call("forget", "reporter", "--yes").code == 1


def test_the_files_that_a_forgotten_agent_kept_are_removed(fleet: Fleet):
    kept = {}
    for name in ("reporter", "other"):
        agent = fleet.agent(name, removed_at=NOON)
        kept[name] = state_directory(CONF.data, agent.pk) / "memory.md"
        # A test before may have had an agent with this key.
        kept[name].parent.mkdir(parents=True, exist_ok=True)
        kept[name].write_text("kept between runs")
    assert call("forget", "reporter", "--yes").code == 0
    assert not kept["reporter"].parent.exists()
    assert kept["other"].exists()
    shutil.rmtree(kept["other"].parent)


def test_an_agent_that_is_defined_is_not_forgotten(fleet: Fleet):
    used_agent(fleet, directory="/project/agents/reporter")
    said = call("forget", "reporter", "--yes")
    assert said.code == 1
    assert "only an agent whose directory was removed can be forgotten" in said.err
    assert Agent.objects.exists()


def test_an_agent_with_a_run_in_progress_is_not_forgotten(fleet: Fleet):
    agent = fleet.agent()
    fleet.start(fleet.enqueue(agent))
    Agent.objects.update(removed_at=NOON)
    with pytest.raises(Refused, match=r"a run is still running: wait .* manage\.py stop reporter$"):
        removal.forget_agent(agent, "ann", NOON)
    assert Run.objects.exists()


def test_an_agent_whose_directory_returns_meanwhile_keeps_its_history(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    agent = used_agent(fleet)
    Agent.objects.update(removed_at=NOON)
    refuse = removal._refuse_unfinished

    def returns(*arguments: Any) -> None:
        refuse(*arguments)
        Agent.objects.update(removed_at=None)

    monkeypatch.setattr(removal, "_refuse_unfinished", returns)
    said = call("forget", "reporter", "--yes")
    assert (said.code, said.out) == (1, "")
    assert "only an agent whose directory was removed can be forgotten" in said.err
    assert agent.runs.exists() and agent.work_items.exists() and Firing.objects.exists()
    assert not RunEvent.objects.filter(name="agent.forgotten").exists()


# --- another project ----------------------------------------------------------------------------


def test_agents_of_an_earlier_project_are_left_out_of_default_views(fleet: Fleet):
    """Guard: after a change of DROVER_PROJECT all agents of the old project stayed in the lists."""
    here = CONF.project / "agents"
    used_agent(fleet, "present", directory=str(here / "present"))
    used_agent(fleet, "removed", directory=str(here / "removed"), removed_at=None)
    used_agent(fleet, "previous", directory="/another/project/agents/previous")
    Agent.objects.exclude(name="present").update(removed_at=NOON)
    assert agents_in_stat() == ["present", "removed"]
    assert agents_in_stat("--all") == ["present", "previous", "removed"]
    assert agents_in_stat("previous") == ["previous"]
    assert schedules_listed() == {"present", "removed"}
    assert schedules_listed("--all") == {"present", "previous", "removed"}
    assert schedules_listed("--agent", "previous") == {"previous"}
    assert firings_listed() == {"present", "removed"}
    assert firings_listed("--all") == {"present", "previous", "removed"}
    assert firings_listed("--agent", "previous") == {"previous"}
    assert "did you mean" not in call("run", "previou").err
    assert "did you mean 'previous" not in call("schedule", "show", "previous/mai").err
    assert "did you mean 'present'?" in call("run", "presen").err


def test_a_sibling_directory_with_the_same_beginning_is_another_project(fleet: Fleet):
    sibling = Path(f"{CONF.project}-old")
    used_agent(fleet, "previous", directory=str(sibling / "agents" / "previous"))
    Agent.objects.update(removed_at=NOON)
    assert agents_in_stat() == []


def agents_in_stat(*options: str) -> list[str]:
    return [agent["name"] for agent in call("stat", "--json", *options).json["agents"]]


def schedules_listed(*options: str) -> set[str]:
    found = call("schedule", "list", "--json", *options).json["schedules"]
    return {schedule["agent"] for schedule in found}


def firings_listed(*options: str) -> set[str]:
    found = call("schedule", "firings", "--json", *options).json["firings"]
    return {firing["agent"] for firing in found}
