"""Concurrent reports of usage: every report is counted, and every exceeded cap takes effect."""

from typing import Any

from tests.races.arena import Arena

RACERS = 4
TIMES = 10


def _running(arena: Arena, count: int = 1, scale: int = 1, **columns: Any) -> tuple[list[int], int]:
    """Agents whose runs are all started, and the worker that started them."""
    agents: list[int] = arena.do("make_agents", count=count, scale=scale, **columns)
    for agent in agents:
        arena.race(("ask", {"agent_id": agent, "times": scale}))
    worker = arena.do("make_worker")
    assert arena.race(("start_all", {"worker_id": worker})) == [count * scale]
    return agents, worker


def test_concurrent_reports_of_one_agent_are_all_counted(arena: Arena):
    (agent,), _ = _running(arena, scale=2, budget={"tokens_per_day": RACERS * TIMES * 2})
    reports = [("spend", {"agent_id": agent, "times": TIMES})] * RACERS
    assert arena.race(*reports) == [[]] * RACERS
    spent, total = arena.do("spent"), RACERS * TIMES * 2
    assert (spent["runs"], spent["days"], spent["rows"]) == (total, total, 1)
    assert round(spent["usd"], 6) == total / 100
    assert (spent["agents_over"], spent["events"], spent["stop_requests"]) == (1, 1, 2)


def test_a_project_cap_that_only_all_agents_together_exceed_takes_effect(arena: Arena):
    """Guard: the project's sum is read after the report is committed. Read in the same
    transaction, the last two reports would not see each other on PostgreSQL."""
    agents, _ = _running(arena, count=RACERS)
    arena.do("cap_project", tokens_per_month=RACERS * TIMES)
    reports = [("spend", {"agent_id": agent, "times": TIMES}) for agent in agents]
    assert arena.race(*reports) == [[]] * RACERS
    spent = arena.do("spent")
    assert (spent["days"], spent["tenants_over"], spent["events"]) == (RACERS * TIMES, 1, 1)
    assert spent["stop_requests"] == RACERS


def test_concurrent_reports_stops_sweeps_and_ends_never_deadlock(arena: Arena):
    agents, worker = _running(arena, count=3, scale=3, budget={"tokens_per_day": 30})
    arena.do("cap_project", tokens_per_month=70)
    results = arena.race(
        *[("spend", {"agent_id": agent, "times": TIMES}) for agent in agents],
        *[("spend", {"agent_id": agent, "times": TIMES}) for agent in reversed(agents)],
        ("stop_all", {"seconds": 0.3}),
        ("sweep_budgets", {"seconds": 0.3}),
        ("finish_all", {"worker_id": worker}),
        seconds=60,
    )
    assert [errors for errors in results if errors] == []
    spent = arena.do("spent")
    assert spent["runs"] == spent["days"]
    assert arena.do("find", check="broken_invariants") == []
