"""Several beats evaluate the same rules: each rule fires once, also after a beat was killed."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.parts.processes import is_gone
from tests.parts.waiting import wait_for
from tests.races.arena import Arena
from tests.races.checks import EPOCH


def _rules(arena: Arena, tmp_path: Path, *lines: str) -> str:
    arena.do("make_agents", count=3, scale=1000)
    arena.do("write_rules", project=str(tmp_path), lines=list(lines))
    return str(tmp_path)


def _race_beats(
    arena: Arena, project: str, beats: int, steps: int, lag_seconds: int = 0
) -> list[list[str]]:
    """Ticks of several beats, ten seconds apart; the fired rules of each beat."""
    arena.do("evaluate_rules_once", project=project, after_seconds=0)
    meeting = arena.directory / "meeting"
    meeting.mkdir()
    shared = {"meeting": str(meeting), "racers": beats, "steps": steps, "project": project}
    acts = [{**shared, "racer": racer, "lag_seconds": lag_seconds} for racer in range(beats)]
    return arena.race(*[("evaluate_rules_in_steps", act) for act in acts], seconds=60)


@pytest.mark.parametrize("lag_seconds", [0, 3])
def test_two_beats_fire_each_rule_once_per_interval_and_minute(
    arena: Arena, tmp_path: Path, lag_seconds: int
):
    """Also if the clock of one host is behind: a later tick of the other is no missed tick."""
    project = _rules(
        arena,
        tmp_path,
        "[a] every 1m => summon agent-0",
        "[b] at * * * * * => resume all",
        "[c] every 1m => summon agent-0",
    )
    beats = _race_beats(arena, project, beats=2, steps=30, lag_seconds=lag_seconds)
    minutes = [(EPOCH + timedelta(minutes=n)).isoformat(timespec="minutes") for n in range(1, 6)]
    expected = [f"{rule} {minute}" for rule in "abc" for minute in minutes]
    assert sorted(line for lines in beats for line in lines) == expected


def test_several_rules_and_beats_summon_an_agent_once_per_minute(arena: Arena, tmp_path: Path):
    lines = [f"[{name}] every 10s => summon agent-1" for name in "abcdef"]
    project = _rules(arena, tmp_path, *lines)
    fired = _race_beats(arena, project, beats=3, steps=15)
    assert sum(map(len, fired)) == 15 * len(lines)
    assert sorted(arena.do("summons")) == ["12:00:10", "12:01:10", "12:02:10"]


def test_the_command_of_a_killed_beat_is_dead_and_its_rule_abandoned(arena: Arena, tmp_path: Path):
    pid_file = tmp_path / "pid"
    project = _rules(arena, tmp_path, f'[a] every 1m => run "echo $$ > {pid_file}; sleep 1000"')
    arena.do("evaluate_rules_once", project=project, after_seconds=0)
    beat = arena.start(
        "start_command_and_die", project=project, after_seconds=60, pid_file=str(pid_file)
    )
    assert beat.died_of_sigkill()
    pid = int(pid_file.read_text())
    wait_for(lambda: is_gone(pid), message="the command still runs after its beat was killed")
    assert arena.do("rule_status", name="a")[0] == "run"
    arena.do("evaluate_rules_once", project=project, after_seconds=70)
    assert arena.do("rule_status", name="a") == [
        "abandoned",
        "beat ended while the action was running",
    ]
    arena.do("evaluate_rules_once", project=project, after_seconds=120)
    assert arena.do("rule_status", name="a")[0] == "run"
