"""Concurrent processes request the slots of an agent: never too many runs, and no idle slot."""

import pytest

from tests.races.arena import Arena


def test_twelve_processes_racing_for_three_slots_get_exactly_three(arena: Arena):
    (agent,) = arena.do("make_agents", scale=3)
    arena.race(*[("ask", {"agent_id": agent, "times": 10})] * 12)
    assert arena.do("count", model="work") == 120
    assert arena.do("count", model="run") == 3
    assert arena.do("find", check="too_many_runs") == []
    assert arena.do("find", check="idle_slots") == []
    assert arena.do("find", check="broken_invariants") == []


def test_without_the_index_and_the_lock_too_many_runs_are_admitted(arena: Arena):
    """Shows that the check above can fail, and that it passes because of these guards."""
    (agent,) = arena.do("make_agents", scale=3)
    arena.do("drop_index", model="Run", name="run_slot_once")
    arena.race(*[("ask", {"agent_id": agent, "times": 10, "broken": True})] * 12)
    assert arena.do("find", check="too_many_runs") != []


@pytest.mark.parametrize("hand_over", [False, True])
def test_unfinished_runs_never_exceed_the_scale(arena: Arena, hand_over):
    (agent,) = arena.do("make_agents", scale=3)
    asking = [("ask", {"agent_id": agent, "times": 15})] * 4
    working = [("work", {"seconds": 3, "hand_over": hand_over})] * 4
    *_, most = arena.race(*asking, *working, ("most_unfinished", {"seconds": 3}))
    _finish_all(arena)
    assert most == 3
    assert arena.do("count", model="run", state="succeeded") == 60
    assert arena.do("find", check="work_done_twice") == []
    assert arena.do("find", check="broken_invariants") == []


def test_a_scale_that_changes_continuously_never_gives_a_slot_twice(arena: Arena):
    (agent,) = arena.do("make_agents", scale=1)
    asking = [("ask", {"agent_id": agent, "times": 15})] * 4
    working = [("work", {"seconds": 3})] * 3
    scaling = ("rescale", {"seconds": 3, "agent_id": agent, "scales": [1, 4, 2, 5, 3]})
    *_, most = arena.race(*asking, *working, scaling, ("most_unfinished", {"seconds": 3}))
    assert most <= 5
    _finish_all(arena)
    assert arena.do("find", check="work_done_twice") == []
    assert arena.do("count", model="run", state="succeeded") == 60


def test_all_agents_together_never_exceed_the_projects_cap(arena: Arena):
    agents = arena.do("make_agents", count=4, cap=3, scale=2)
    asking = [("ask", {"agent_id": agent, "times": 20}) for agent in agents]
    working = [("work", {"seconds": 3})] * 3
    *results, most = arena.race(*asking, *working, ("most_unfinished", {"seconds": 3}))
    assert most <= 3
    assert [error for result in results[4:] for error in result["errors"]] == []
    _finish_all(arena)
    assert arena.do("count", model="run", state="succeeded") == 80
    assert arena.do("find", check="broken_invariants") == []


def test_concurrent_requests_with_the_same_key_make_one_work_item(arena: Arena):
    (agent,) = arena.do("make_agents", scale=2)
    arena.race(*[("ask", {"agent_id": agent, "times": 10, "keys": True})] * 6)
    assert arena.do("count", model="work") == 10
    assert arena.do("find", check="too_many_runs") == []
    assert arena.do("find", check="broken_invariants") == []


def _finish_all(arena: Arena) -> None:
    while arena.do("count", model="work", state__in=["queued", "admitted"]):
        arena.race(("work", {"seconds": 1}), ("work", {"seconds": 1}))
