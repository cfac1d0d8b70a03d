"""Several want the same run at once: to start it, to end it, to stop it, to declare it lost."""

from tests.races.arena import Arena

RUNS = 30


def _runs(arena: Arena, **columns: object) -> int:
    """Many pending runs, and a worker for them."""
    (agent,) = arena.do("make_agents", scale=RUNS, **columns)
    arena.race(("ask", {"agent_id": agent, "times": RUNS}))
    worker: int = arena.do("make_worker")
    return worker


def _all_is_well(arena: Arena) -> None:
    assert arena.do("find", check="runs_that_ended_twice") == []
    assert arena.do("find", check="too_many_runs") == []
    assert arena.do("find", check="broken_invariants") == []


def test_a_run_that_is_finished_and_declared_lost_at_once_ends_one_way(arena: Arena):
    worker = _runs(arena, on_lost="retry")
    arena.race(("start_all", {"worker_id": worker}))
    arena.race(("finish_all", {"worker_id": worker}), ("lose_all", {}))
    done = arena.do("count", model="work", state="done")
    again = arena.do("count", model="work", state__in=["queued", "admitted"])
    assert done + again == RUNS
    _all_is_well(arena)


def test_a_run_that_two_sweeps_declare_lost_is_lost_once(arena: Arena):
    worker = _runs(arena, on_lost="retry")
    arena.race(("start_all", {"worker_id": worker}))
    arena.race(("lose_all", {}), ("lose_all", {}), ("lose_all", {}))
    assert arena.do("count", model="run", state="lost") == RUNS
    _all_is_well(arena)


def test_a_run_that_is_started_and_stopped_at_once_is_one_or_the_other(arena: Arena):
    worker = _runs(arena)
    started, _ = arena.race(("start_all", {"worker_id": worker}), ("stop_all", {}))
    assert arena.do("count", model="run", state="running") == started
    assert arena.do("count", model="run", state="stopped") == RUNS - started
    _all_is_well(arena)


def test_a_run_that_many_workers_start_at_once_belongs_to_one(arena: Arena):
    _runs(arena)
    workers = [arena.do("make_worker") for _ in range(4)]
    started = arena.race(*[("start_all", {"worker_id": worker}) for worker in workers])
    assert sum(started) == RUNS
    assert arena.do("count", model="run", state="running") == RUNS


# --- locks in one order ---------------------------------------------------------------------


def test_beats_and_workers_under_a_cap_never_stand_in_each_others_way(arena: Arena):
    """Both lock agents and the tenant: in different orders they would wait for each other."""
    agents = arena.do("make_agents", count=8, cap=4, scale=2)
    arena.do("make_schedules", agents=agents, count=3, expressions=["* * * * *"], overlap="queue")
    beats = [("beat", {"seconds": 4, "speed": 300})] * 3
    workers = [("work", {"seconds": 4})] * 3
    *results, most = arena.race(*beats, *workers, ("most_unfinished", {"seconds": 4}))
    errors = [error for found in results[:3] for error in found]
    errors += [error for found in results[3:] for error in found["errors"]]
    assert errors == []
    assert most <= 4
    _all_is_well(arena)


def test_people_who_stop_runs_and_schedules_that_replace_them_do_not_either(arena: Arena):
    agents = arena.do("make_agents", count=3, scale=2)
    arena.do(
        "make_schedules", agents=agents, count=3, expressions=["* * * * *"], overlap="cancel_other"
    )
    beats = [("beat", {"seconds": 3, "speed": 300})] * 2
    workers = [("work", {"seconds": 3})]
    people = [("stop_all", {"seconds": 3})] * 2
    *results, worked = arena.race(*beats, *people, *workers)
    assert [error for found in results for error in found] + worked["errors"] == []
    _all_is_well(arena)
