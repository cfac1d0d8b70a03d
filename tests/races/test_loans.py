"""Concurrent workers whose runs call each other and wait: slots are lent and returned."""

import pytest

from tests.parts.waiting import BUSY_FACTOR
from tests.races.arena import Arena

SECONDS = 5


@pytest.mark.parametrize(("agents", "cap"), [(2, None), (3, 2)])
def test_lent_slots_are_never_duplicated_and_all_are_returned(
    arena: Arena, agents: int, cap: int | None
):
    arena.do("make_agents", count=agents, cap=cap, scale=1, max_call_depth=6)
    workers = [("run_random_calls", {"seconds": SECONDS, "seed": seed}) for seed in range(4)]
    for _ in range(BUSY_FACTOR):
        *errors, most = arena.race(*workers, ("most_working", {"seconds": SECONDS}), seconds=90)
        assert [error for found in errors for error in found] == []
        assert most["of_agent"] <= 1
        assert cap is None or most["of_all"] <= cap
        if loans := arena.do("loans_made"):
            break
    assert loans > 0
    _finish_all(arena)
    assert arena.do("count", model="run", slot__isnull=False) == 0
    assert arena.do("open_calls") == 0
    assert arena.do("find", check="broken_invariants") == []


def _finish_all(arena: Arena) -> None:
    """Run the remaining work without loans: no work item may be stuck."""
    for _ in range(60):
        if not arena.do("count", model="work", state__in=["queued", "admitted"]):
            return
        arena.race(("work", {"seconds": 1}), seconds=60)
    raise AssertionError("some work items never run")
