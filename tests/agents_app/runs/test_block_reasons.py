"""Each block reason has the same meaning in SQL, in Python and in its text."""

from typing import Any

import pytest

from agents_app.errors import Refused
from agents_app.models import Agent, Firing, Scheduler, Tenant, WorkItem
from agents_app.runs import find_blocks, lock_agent, read_blocked_agents
from agents_app.runs.block_reasons import BLOCKS, SKIP_REASON_TEXTS, Block
from tests.agents_app.fleet import NOON, Fleet

ERRORS = "agents/reporter/SKILL.md: no command: set `command`\nagents/reporter/SKILL.md:3: x"
TABLES: dict[str, Any] = {"agent": Agent, "tenant": Tenant, "scheduler": Scheduler}


def set_block(block: Block) -> None:
    Scheduler.objects.get_or_create(pk=1, defaults={"state": Scheduler.State.RUNNING})
    TABLES[block.row].objects.update(**{block.column: NOON if block.value is None else block.value})
    if block.never_valid:
        Agent.objects.update(definition_error=ERRORS)


def find_by_rows(agent: Agent) -> list[str]:
    agent = Agent.objects.select_related("tenant").get(pk=agent.pk)
    found = find_blocks(agent, agent.tenant, Scheduler.objects.filter(pk=1).first())
    return [block.code for block in found]


def test_an_agent_without_a_block_may_start(fleet: Fleet):
    agent = fleet.agent()
    gate = lock_agent(agent.pk)
    assert gate is not None
    assert (gate.block, gate.blocked_reason, gate.refuses_work) == (None, "", False)
    assert (find_by_rows(agent), read_blocked_agents()) == ([], [])
    Scheduler.objects.create(pk=1, state=Scheduler.State.RUNNING)
    assert find_by_rows(agent) == []
    assert lock_agent(agent.pk) == gate


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.code)
def test_sql_and_rows_find_the_same_block(fleet: Fleet, block: Block):
    agent = fleet.agent()
    set_block(block)
    gate = lock_agent(agent.pk)
    assert gate is not None
    assert gate.block == block
    assert gate.blocked_reason in Firing.Reason
    assert find_by_rows(agent) == [block.code]
    assert read_blocked_agents() == [agent.pk]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.code)
def test_work_is_refused_with_the_remedy_or_waits(fleet: Fleet, block: Block):
    agent = fleet.agent()
    set_block(block)
    if block.refuses_work:
        # Guard: an agent without a command must not be reported as one with scale 0.
        remedy = ERRORS.splitlines()[0] if block.never_valid else block.remedy
        with pytest.raises(Refused, match=f"^{block.text}: {remedy}$"):
            fleet.enqueue(agent)
        assert not WorkItem.objects.exists()
    else:
        assert fleet.enqueue(agent).state == "queued"


def test_a_file_that_was_corrected_meanwhile_is_refused_with_the_remedy(fleet: Fleet):
    block = next(block for block in BLOCKS if block.never_valid)
    assert block.refusal(fleet.agent().pk) == f"{block.text}: {block.remedy}"


def test_the_first_block_of_several_is_the_reason(fleet: Fleet):
    agent = fleet.agent()
    for count, block in enumerate(reversed(BLOCKS), start=1):
        set_block(block)
        gate = lock_agent(agent.pk)
        assert gate is not None and gate.block == block
        # A column has one value at a time, and blocks the agent for one reason. An agent that was
        # never valid is not reported as one with scale 0, too.
        columns = {
            (each.row, "scale" if each.never_valid else each.column) for each in BLOCKS[-count:]
        }
        assert len(find_by_rows(agent)) == len(columns)


def test_every_reason_that_a_firing_can_store_has_a_text():
    assert SKIP_REASON_TEXTS.keys() == set(Firing.Reason)
