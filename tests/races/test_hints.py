"""A hint that is delivered a hundred times to several workers starts its run once."""

from pathlib import Path

import pytest

from tests.races.arena import Arena

RUNS, PROCESSES, TIMES = 6, 5, 20


def _pending(arena: Arena, notes: Path) -> list[int]:
    """Pending runs whose programs write a line for each execution."""
    notes.touch()
    command = ["sh", "-c", f"echo $DROVER_RUN_ID >> {notes}"]
    runtime = {"sandbox": {"write": [str(notes)]}}
    (agent,) = arena.do("make_agents", scale=RUNS, command=command, runtime=runtime)
    arena.race(("ask", {"agent_id": agent, "times": RUNS}))
    assert arena.do("count", model="run", state="pending") == RUNS
    return list(range(1, RUNS + 1))


def _executions(notes: Path) -> dict[int, int]:
    ran = [int(line) for line in notes.read_text().split()]
    return {run_id: ran.count(run_id) for run_id in ran}


@pytest.mark.fault("F4", "F20")
def test_a_hint_delivered_a_hundred_times_runs_once(arena: Arena, tmp_path: Path):
    notes = tmp_path / "notes"
    runs = _pending(arena, notes)
    executed = arena.race(*[("deliver", {"runs": runs, "times": TIMES})] * PROCESSES)
    assert sum(executed) == RUNS
    assert _executions(notes) == dict.fromkeys(runs, 1)
    assert arena.do("count", model="run", state="succeeded") == RUNS
    assert arena.do("find", check="work_done_twice") == []


def test_without_the_condition_in_the_move_a_hint_runs_more_than_once(arena: Arena, tmp_path: Path):
    """Shows that the check above can fail, and that it passes because of this guard."""
    notes = tmp_path / "notes"
    runs = _pending(arena, notes)
    broken = {"runs": runs, "times": TIMES, "broken": True}
    arena.race(*[("deliver", broken)] * PROCESSES)
    assert max(_executions(notes).values()) > 1
