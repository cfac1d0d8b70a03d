"""Concurrent starts, ends, stops and losses of the same run."""

import pytest

from tests.races.arena import Arena

RUNS = 30


def _runs(arena: Arena, **columns: object) -> int:
    """Create many pending runs; returns the id of a worker for them."""
    (agent,) = arena.do("make_agents", scale=RUNS, **columns)
    arena.race(("ask", {"agent_id": agent, "times": RUNS}))
    worker: int = arena.do("make_worker")
    return worker


def _assert_consistent(arena: Arena) -> None:
    assert arena.do("find", check="runs_that_ended_twice") == []
    assert arena.do("find", check="too_many_runs") == []
    assert arena.do("find", check="broken_invariants") == []


@pytest.mark.fault("F22")
def test_a_run_finished_and_declared_lost_concurrently_ends_once(arena: Arena):
    worker = _runs(arena, on_lost="retry")
    arena.race(("start_all", {"worker_id": worker}))
    arena.race(("finish_all", {"worker_id": worker}), ("lose_all", {}))
    done = arena.do("count", model="work", state="done")
    again = arena.do("count", model="work", state__in=["queued", "admitted"])
    assert done + again == RUNS
    _assert_consistent(arena)


def test_a_run_that_several_sweeps_declare_lost_is_lost_once(arena: Arena):
    worker = _runs(arena, on_lost="retry")
    arena.race(("start_all", {"worker_id": worker}))
    arena.race(("lose_all", {}), ("lose_all", {}), ("lose_all", {}))
    assert arena.do("count", model="run", state="lost") == RUNS
    _assert_consistent(arena)


def test_a_run_started_and_stopped_concurrently_is_either_running_or_stopped(arena: Arena):
    worker = _runs(arena)
    started, _ = arena.race(("start_all", {"worker_id": worker}), ("stop_all", {}))
    assert arena.do("count", model="run", state="running") == started
    assert arena.do("count", model="run", state="stopped") == RUNS - started
    _assert_consistent(arena)


def test_a_run_that_several_workers_start_concurrently_belongs_to_one(arena: Arena):
    _runs(arena)
    workers = [arena.do("make_worker") for _ in range(4)]
    started = arena.race(*[("start_all", {"worker_id": worker}) for worker in workers])
    assert sum(started) == RUNS
    assert arena.do("count", model="run", state="running") == RUNS


# --- locks in one order ---------------------------------------------------------------------


def test_beats_and_workers_under_a_cap_never_deadlock(arena: Arena):
    """Both lock agents and the tenant: in different orders this would be a deadlock."""
    agents = arena.do("make_agents", count=8, cap=4, scale=2)
    arena.do("make_schedules", agents=agents, count=3, expressions=["* * * * *"], overlap="queue")
    beats = [("beat", {"seconds": 4, "speed": 300})] * 3
    workers = [("work", {"seconds": 4})] * 3
    *results, most = arena.race(*beats, *workers, ("most_unfinished", {"seconds": 4}))
    errors = [error for found in results[:3] for error in found]
    errors += [error for found in results[3:] for error in found["errors"]]
    assert errors == []
    assert most <= 4
    _assert_consistent(arena)


def test_stops_by_users_and_by_replacing_firings_never_deadlock(arena: Arena):
    agents = arena.do("make_agents", count=3, scale=2)
    arena.do(
        "make_schedules", agents=agents, count=3, expressions=["* * * * *"], overlap="cancel_other"
    )
    beats = [("beat", {"seconds": 3, "speed": 300})] * 2
    workers = [("work", {"seconds": 3})]
    stops = [("stop_all", {"seconds": 3})] * 2
    *results, worked = arena.race(*beats, *stops, *workers)
    assert [error for found in results for error in found] + worked["errors"] == []
    _assert_consistent(arena)
