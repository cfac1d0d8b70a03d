"""Several beats evaluate the same rules: each rule fires once, also after a beat was killed."""

from collections import Counter
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

from tests.parts.processes import is_gone
from tests.parts.waiting import wait_for
from tests.races.arena import Arena


def _rules(arena: Arena, tmp_path: Path, *lines: str) -> str:
    arena.do("make_agents", count=3, scale=1000)
    arena.do("write_rules", project=str(tmp_path), lines=list(lines))
    return str(tmp_path)


def test_two_beats_fire_each_rule_once_per_interval_and_minute(arena: Arena, tmp_path: Path):
    """A minute passes every tenth of a second."""
    project = _rules(
        arena,
        tmp_path,
        "[a] every 1m => summon agent-0",
        "[b] at * * * * * => resume all",
        "[c] every 1m => summon agent-0",
    )
    arena.do("evaluate_rules_once", project=project, after_seconds=0)
    beats = arena.race(
        *[("evaluate_rules_repeatedly", {"seconds": 2.0, "speed": 60.0, "project": project})] * 2,
        seconds=60,
    )
    fired = Counter(line for lines in beats for line in lines)
    by_rule = Counter(line.split()[0] for line in fired)
    assert by_rule.keys() == {"a", "b", "c"}
    assert all(times == 1 for times in fired.values())


def test_several_rules_and_beats_summon_an_agent_once_per_minute(arena: Arena, tmp_path: Path):
    lines = [f"[{name}] every 10s => summon agent-1" for name in "abcdef"]
    project = _rules(arena, tmp_path, *lines)
    arena.do("evaluate_rules_once", project=project, after_seconds=0)
    arena.race(
        *[("evaluate_rules_repeatedly", {"seconds": 5.0, "speed": 30.0, "project": project})] * 3,
        seconds=60,
    )
    moments = sorted(
        timedelta(hours=int(h), minutes=int(m), seconds=int(s))
        for h, m, s in (clock.split(":") for clock in arena.do("summons"))
    )
    assert moments
    gaps = [b - a for a, b in pairwise(moments)]
    assert all(gap >= timedelta(seconds=59) for gap in gaps), gaps


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
